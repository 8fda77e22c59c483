package rpc

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/cairnsync/cairn/sdk"
)

// logBook is a log that is read while it is written.
type logBook struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBook) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBook) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func TestACallThatOutlivesItsContextIsToldToTheLogOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var book logBook
		w := newWork(hclog.New(&hclog.LoggerOptions{Output: &book, Level: hclog.Debug}))
		ctx, cancel := context.WithCancel(t.Context())
		goOn := make(chan struct{})
		ended := make(chan error, 1)
		go func() {
			ended <- w.do(ctx, "put", "a/b", func(context.Context) error {
				<-goOn // deaf
				return nil
			})
		}()
		cancel()
		time.Sleep(overdueAfter - time.Second)
		synctest.Wait()
		if told := book.String(); told != "" {
			t.Errorf("told too soon: %s", told)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		for _, want := range []string{"hangs in it", "op=put", "key=a/b", "context canceled"} {
			if strings.Count(book.String(), want) != 1 {
				t.Errorf("%q does not stand once in the log:\n%s", want, book.String())
			}
		}
		close(goOn)
		if err := <-ended; err != nil {
			t.Errorf("the call ends with %v", err)
		}
	})
}

func TestACallThatEndsSoonAfterItsContextIsNoMatterForTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var book logBook
		w := newWork(hclog.New(&hclog.LoggerOptions{Output: &book, Level: hclog.Debug}))
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, cancel)
		err := w.do(ctx, "put", "a/b", func(ctx context.Context) error {
			<-ctx.Done()
			time.Sleep(overdueAfter / 2)
			return ctx.Err()
		})
		if err == nil {
			t.Error("no error")
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if told := book.String(); told != "" {
			t.Errorf("told: %s", told)
		}
	})
}

func TestAPanicIsToldWithItsLine(t *testing.T) {
	w := newWork(hclog.NewNullLogger())
	for name, call := range map[string]func(context.Context) error{
		"of the runtime": func(context.Context) error { none := []int{}; none[len(none)]++; return nil },
		"of its own":     func(context.Context) error { panic(errors.New("planted")) },
	} {
		err := fromStatus(t.Context(), "put", "a/b", w.do(t.Context(), "put", "a/b", call))
		e, ok := errors.AsType[*sdk.Error](err)
		if !ok || !strings.Contains(err.Error(), "the plugin panicked at overdue_test.go:") || e.Hint != panicHint {
			t.Errorf("a panic %s: %v", name, err)
		}
	}
}
