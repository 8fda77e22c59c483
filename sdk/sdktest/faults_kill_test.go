package sdktest_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"syscall"

	"github.com/cairnsync/cairn/sdk"
	"github.com/cairnsync/cairn/sdk/sdktest"
)

func killFaults() []processFault {
	return []processFault{
		{
			name:  "a Put is answered before its object is stored",
			plant: func(p *fakeProcess) { p.mem = sdktest.NewMem() }, // what it has not written yet
			catches: []string{
				"an object whose Put returned is there after kill -9",
				"kill -9 during Puts leaves whole objects or none, and none that was stored is lost",
				"a plugin that is told to end while it works ends all the same, and keeps what it has stored",
				"Drain ends what is running, refuses what comes and counts what is left",
			},
		},
		{
			name: "a dead process leaves half an object",
			plant: func(p *fakeProcess) {
				kill := p.signals[syscall.SIGKILL]
				p.signals[syscall.SIGKILL] = func() {
					for _, name := range []string{"busy-0-999", "created-00"} {
						p.mem.Plant(p.key(name), []byte("half"))
					}
					kill()
				}
			},
			catches: []string{
				"kill -9 during Puts leaves whole objects or none, and none that was stored is lost",
				"kill -9 during Puts with IfAbsent leaves each key whole or free",
			},
		},
		{
			name: "of many Puts at once one is forgotten",
			plant: func(p *fakeProcess) {
				good := p.put
				p.put = func(ctx context.Context, req sdk.PutRequest) (sdk.PutResult, error) {
					if strings.HasSuffix(req.Key, "/memory-17") {
						return sdk.PutResult{}, nil
					}
					return good(ctx, req)
				}
			},
			catches: []string{"64 Puts of 16 MiB at the same time are stored, and the process lives"},
		},
	}
}

func wireFaults() []processFault {
	return []processFault{
		{
			name: "a Get fills a spool file from its beginning",
			plant: func(p *fakeProcess) {
				good := p.fetch
				p.fetch = func(ctx context.Context, req sdk.GetRequest, f *os.File, _ int64) (int64, error) {
					return good(ctx, req, f, 0)
				}
			},
			catches: []string{"a Get into a spool file writes exactly the object's bytes, exactly where it is told to"},
		},
		{
			name:    "a body is the beginning of its file",
			plant:   putOf(func(f *os.File, _ int64) io.ReaderAt { return f }),
			catches: []string{"a body is a range of a spool file: nothing before or behind it is stored"},
		},
		{
			name: "a spool file is opened by its name, whatever it is",
			plant: putOf(func(f *os.File, _ int64) io.ReaderAt {
				content, _ := os.ReadFile(f.Name())
				return bytes.NewReader(content)
			}),
			catches: []string{"a spool file that is no regular file is refused, and at once"},
		},
		{
			name: "a spool file that is not there ends the process",
			plant: func(p *fakeProcess) {
				good := p.put
				p.put = func(ctx context.Context, req sdk.PutRequest) (sdk.PutResult, error) {
					if f, _ := req.Body.File(); f != nil {
						if _, err := os.Stat(f.Name()); err != nil {
							p.exit(2, false)
							return sdk.PutResult{}, sdk.PluginGone
						}
					}
					return good(ctx, req)
				}
			},
			catches: []string{"a spool file that is not there is an error of that call only"},
		},
		{
			name: "an error does not say what was done to what",
			plant: func(p *fakeProcess) {
				good := p.get
				p.get = func(ctx context.Context, req sdk.GetRequest) (sdk.GetResult, error) {
					res, err := good(ctx, req)
					if err != nil {
						err = &sdk.Error{Code: sdk.CodeOf(err)}
					}
					return res, err
				}
			},
			catches: []string{"an error crosses the wire with its code, what was done to what, and a text that can be shown"},
		},
	}
}

// putOf stores a body whose source is not the range of its spool file but whatever source makes of the file.
func putOf(source func(f *os.File, off int64) io.ReaderAt) func(p *fakeProcess) {
	return func(p *fakeProcess) {
		good := p.put
		p.put = func(ctx context.Context, req sdk.PutRequest) (sdk.PutResult, error) {
			f, off := req.Body.File()
			if f == nil {
				return good(ctx, req)
			}
			content := make([]byte, req.Body.Size())
			if _, err := source(f, off).ReadAt(content, 0); err != nil && !errors.Is(err, io.EOF) {
				return sdk.PutResult{}, err
			}
			return p.mem.Put(ctx, sdk.PutRequest{Key: req.Key, Body: sdk.BytesBody(content)})
		}
	}
}
