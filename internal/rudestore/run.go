package rudestore

import (
	"bytes"
	"context"
	"io"
	"sync/atomic"
	"testing"

	"github.com/cairnsync/cairn/sdk"
	"github.com/cairnsync/cairn/sdk/sdktest"
)

// Run puts a plugin's target through the exam (core and conditional) on a good store and through every scenario, each on a store of its own. open makes the target
// for a server, with the vendor's client as the plugin has it in production, and has it closed when its test ends.
func Run(t *testing.T, d Dialect, open func(t *testing.T, server Server) sdk.Target) {
	t.Helper()
	t.Run("the exam", func(t *testing.T) { exam(t, d, open) })
	t.Run("a Put reads its body no more often than it must", func(t *testing.T) {
		times := readsOfPut(t, d, open)
		t.Logf("%s: %.3f bytes are read for each byte of the body", d, times)
		if times < 1 || times > mostReads(d) {
			t.Errorf("%.3f bytes are read for each byte of the body; want at most %v", times, mostReads(d))
		}
	})
	for _, s := range Scenarios() {
		if s.of(d) {
			t.Run(s.Name, func(t *testing.T) {
				for _, complaint := range s.play(t, d, open) {
					t.Error(complaint)
				}
			})
		}
	}
}

// exam leaves bulk to the real servers: this store keeps all in memory, and the race detector makes much of it slow.
func exam(t *testing.T, d Dialect, open func(*testing.T, Server) sdk.Target) {
	for _, c := range sdktest.Cases() {
		if c.Level != sdktest.Core && c.Level != sdktest.Conditional {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			server := New(d).Start(t)
			result := sdktest.RunCase(t.Context(), c, &sdktest.Env{
				Target: sdk.Guard(open(t, server)),
				Reopen: func(context.Context) (sdk.Target, error) { return sdk.Guard(open(t, server)), nil },
			})
			if result.Err != nil || result.Skipped != "" {
				t.Error(result.Err, result.Skipped)
			}
		})
	}
}

// mostReads is how many bytes a Put may read for each byte of its body. Once is enough where the store checks a digest that a body comes
// with; Azure's is one that nobody has yet, which costs a second pass.
func mostReads(d Dialect) float64 {
	if d == Azure {
		return 2
	}
	return 1
}

// readsOfPut counts the bytes that a plugin reads for each byte of a body.
func readsOfPut(t *testing.T, d Dialect, open func(*testing.T, Server) sdk.Target) float64 {
	t.Helper()
	store := New(d)
	target := open(t, store.Start(t))
	content := bytes.Repeat([]byte("sixteen bytes.. "), 1<<16) // 1 MiB
	source := &counted{ReaderAt: bytes.NewReader(content)}
	body := sdk.NewBody(source, int64(len(content)), sdk.SumsOf(content))
	if _, err := target.Put(t.Context(), sdk.PutRequest{Key: "read/often", Body: body, Class: sdk.ClassBulk}); err != nil {
		t.Fatal(err)
	}
	if kept, _ := store.Content("read/often"); !bytes.Equal(kept, content) {
		t.Errorf("%d bytes are stored that are not the %d of the body", len(kept), len(content))
	}
	return float64(source.bytes.Load()) / float64(len(content))
}

type counted struct {
	io.ReaderAt
	bytes atomic.Int64
}

func (c *counted) ReadAt(p []byte, off int64) (int, error) {
	n, err := c.ReaderAt.ReadAt(p, off)
	c.bytes.Add(int64(n))
	return n, err
}
