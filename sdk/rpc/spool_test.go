package rpc

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cairnsync/cairn/sdk"
	"github.com/cairnsync/cairn/sdk/internal/pb"
)

func bigContent() []byte { return bytes.Repeat([]byte("0123456789abcdef"), (sdk.MaxInline+4096)/16) }

// spoolFile puts content behind some bytes of something else.
func spoolFile(t *testing.T, spool string, content []byte) (f *os.File, off int64) {
	t.Helper()
	f, err := os.CreateTemp(spool, "pack-*")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if _, err := f.Write(append([]byte("something else"), content...)); err != nil {
		t.Fatal(err)
	}
	return f, int64(len("something else"))
}

func TestALargeBodyCrossesAsTheNameOfARange(t *testing.T) {
	mem := newStore()
	client, spool := serveTarget(t, mem, Clocks{})
	content := bigContent()
	f, off := spoolFile(t, spool, content)
	body := sdk.FileBody(f, off, int64(len(content)), sdk.SumsOf(content))
	if _, err := client.Put(t.Context(), sdk.PutRequest{Key: "big", Body: body}); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(mem.content("big"), content) {
		t.Error("the object is not the range")
	}
}

func TestALargeBodyThatLiesElsewhereIsRefused(t *testing.T) {
	client, _ := serveTarget(t, newStore(), Clocks{})
	content := bigContent()
	outside, off := spoolFile(t, t.TempDir(), content)
	for name, body := range map[string]sdk.Body{
		"in memory":            sdk.BytesBody(content),
		"in another directory": sdk.FileBody(outside, off, int64(len(content)), sdk.SumsOf(content)),
	} {
		if _, err := client.Put(t.Context(), sdk.PutRequest{Key: "big", Body: body}); !errors.Is(err, sdk.Unsupported) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// CASES A17
func TestADamagedSmallBodyNeverLeavesTheHost(t *testing.T) {
	mem := newStore()
	client, _ := serveTarget(t, mem, Clocks{})
	body := sdk.NewBody(strings.NewReader("abc"), 3, sdk.SumsOf([]byte("abd")))
	if _, err := client.Put(t.Context(), sdk.PutRequest{Key: "small", Body: body}); !errors.Is(err, sdk.Corrupt) {
		t.Errorf("put: %v", err)
	}
	if mem.puts.Load() != 0 {
		t.Error("the plugin was asked")
	}
}

// CASES A18
func TestASpoolFileThatShrankIsCorruptBeforeTheStoreSeesIt(t *testing.T) {
	mem := newStore()
	client, spool := serveTarget(t, mem, Clocks{})
	content := bigContent()
	f, off := spoolFile(t, spool, content)
	if err := f.Truncate(off + int64(len(content)) - 1); err != nil {
		t.Fatal(err)
	}
	body := sdk.FileBody(f, off, int64(len(content)), sdk.SumsOf(content))
	if _, err := client.Put(t.Context(), sdk.PutRequest{Key: "big", Body: body}); !errors.Is(err, sdk.Corrupt) {
		t.Errorf("put: %v", err)
	}
	if mem.puts.Load() != 0 {
		t.Error("the target was asked")
	}
}

// rawPut sends a request that no Client would make.
func rawPut(t *testing.T, client *Client, at *pb.FileRange, content []byte) error {
	t.Helper()
	sums := sdk.SumsOf(content)
	stream, err := client.wire.rpc.Put(t.Context(), &pb.PutRequest{
		Key: "k", Size: int64(len(content)), Sha256: sums.SHA256[:], Source: &pb.PutRequest_File{File: at},
	})
	for err == nil {
		_, err = stream.Recv()
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return fromStatus(t.Context(), "put", "k", err)
}

func TestAFileRangeIsConfinedToRegularFilesOfAProvenRoot(t *testing.T) {
	client, spool := serveTarget(t, newStore(), Clocks{})
	content := []byte("secret")
	outside := filepath.Join(t.TempDir(), "outside")
	for _, err := range []error{
		os.WriteFile(outside, content, 0o600),
		os.WriteFile(filepath.Join(spool, "inside"), content, 0o600),
		os.Symlink(outside, filepath.Join(spool, "link-out")),
		os.Symlink("inside", filepath.Join(spool, "link-in")),
		os.Symlink(filepath.Dir(outside), filepath.Join(spool, "dir-out")),
		os.Mkdir(filepath.Join(spool, "dir"), 0o700),
		syscall.Mkfifo(filepath.Join(spool, "fifo"), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := rawPut(t, client, &pb.FileRange{Root: "spool", Path: "inside"}, content); err != nil {
		t.Errorf("a file in the spool: %v", err)
	}
	rel, err := filepath.Rel(spool, outside)
	if err != nil {
		t.Fatal(err)
	}
	for name, at := range map[string]*pb.FileRange{
		"an absolute path":             {Root: "spool", Path: outside},
		"a path that climbs out":       {Root: "spool", Path: rel},
		"a link to a file outside":     {Root: "spool", Path: "link-out"},
		"a link to a file inside":      {Root: "spool", Path: "link-in"},
		"a path through a link":        {Root: "spool", Path: "dir-out/outside"},
		"a directory":                  {Root: "spool", Path: "dir"},
		"a FIFO, which nobody writes":  {Root: "spool", Path: "fifo"},
		"a file that is not there":     {Root: "spool", Path: "nothing"},
		"the empty path":               {Root: "spool"},
		"a root that was never proven": {Root: "other", Path: "inside"},
		"a negative offset":            {Root: "spool", Path: "inside", Offset: -1},
		"an offset after the end":      {Root: "spool", Path: "inside", Offset: 1},
	} {
		if err := rawPut(t, client, at, content); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

func TestAPluginThatDoesNotSeeTheSpoolIsRefusedWithTheReason(t *testing.T) {
	client, stop, err := inProcess(blind{}, Clocks{}.orDefault())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stop() }()
	spool := t.TempDir()
	err = client.Configure(t.Context(), Configuration{Target: "test", Spool: spool})
	var e *sdk.Error
	if !errors.As(err, &e) || e.Code != sdk.InvalidConfig || !strings.Contains(err.Error(), spool) || e.Hint == "" {
		t.Errorf("configure: %v", err)
	}
	if left, err := os.ReadDir(spool); err != nil || len(left) != 0 {
		t.Errorf("the nonce is left behind: %v, %v", left, err)
	}
}

func TestFetchHasThePluginFillARangeOfTheSpool(t *testing.T) {
	mem := newStore()
	client, spool := serveTarget(t, mem, Clocks{})
	content := bigContent()
	mem.plant("big", content)
	for name, dir := range map[string]string{"a spool file": spool, "a file elsewhere, over the stream": t.TempDir()} {
		f, off := spoolFile(t, dir, nil)
		n, err := client.Fetch(t.Context(), sdk.GetRequest{Key: "big", Offset: 16, Length: -1}, f, off)
		if err != nil || n != int64(len(content))-16 {
			t.Errorf("%s: %d bytes, %v", name, n, err)
			continue
		}
		got, err := os.ReadFile(f.Name())
		if err != nil || string(got[:off]) != "something else" || !bytes.Equal(got[off:], content[16:]) {
			t.Errorf("%s: the file does not hold the range, %v", name, err)
		}
		if _, err := client.Fetch(t.Context(), sdk.GetRequest{Key: "absent", Length: -1}, f, off); !errors.Is(err, sdk.NotFound) {
			t.Errorf("%s, absent key: %v", name, err)
		}
		if _, err := client.Fetch(t.Context(), sdk.GetRequest{Key: "big", Length: 0}, f, off); !errors.Is(err, sdk.Unsupported) {
			t.Errorf("%s, length 0: %v", name, err)
		}
	}
}
