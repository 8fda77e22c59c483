package sqlcircuit

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/cairnsync/cairn/core/circuit"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(crashDirEnv); dir != "" {
		os.Exit(crashChild(dir))
	}
	goleak.VerifyTestMain(m)
}

// waker is an Env.Wake that a test can wait for.
type waker chan struct{}

func (w waker) wake() {
	select {
	case w <- struct{}{}:
	default:
	}
}

// rig is an open circuit and its wake-ups.
type rig struct {
	*Circuit
	dir   string
	woken waker
}

func newCircuit(t testing.TB, cfg Config, tune ...func(*Circuit)) *Circuit {
	t.Helper()
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	c.limits.lookEach = 2 * time.Millisecond
	for _, f := range tune {
		f(c)
	}
	return c
}

func open(t testing.TB, dir string, cfg Config, tune ...func(*Circuit)) *rig {
	t.Helper()
	r := &rig{Circuit: newCircuit(t, cfg, tune...), dir: dir, woken: make(waker, 1)}
	if err := r.Open(t.Context(), circuit.Env{Dir: dir, Wake: r.woken.wake}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// runUntil steps, as the loop would, until the condition holds.
func (r *rig) runUntil(t testing.TB, done func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for !done() {
		if facts := r.Facts(); facts.Buffered > 0 || facts.StepAsked {
			if _, err := r.Step(ctx); err != nil {
				t.Fatal(err)
			}
			continue
		}
		select {
		case <-r.woken:
		case <-time.After(5 * time.Millisecond): // conditions of the reader's own, such as a note
		case <-ctx.Done():
			t.Fatalf("the condition never came true; stats: %+v", r.Stats())
		}
	}
}

// runFor steps until the inputs have handled n records.
func (r *rig) runFor(t testing.TB, n int64) {
	t.Helper()
	r.runUntil(t, func() bool { return r.handled() >= n })
	if got := r.handled(); got != n {
		t.Fatalf("%d records were handled, want %d", got, n)
	}
}

func (r *rig) handled() (n int64) {
	for _, in := range r.Stats().Inputs {
		n += in.Applied + in.Refused
	}
	return n
}

// ask returns all rows, each as its values joined by "|".
func ask(t testing.TB, c *Circuit, text string) []string {
	t.Helper()
	rows, err := c.Query(t.Context(), text)
	if err != nil {
		t.Fatal(err)
	}
	lines := []string{}
	for row, err := range rows {
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, line(row))
	}
	return lines
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func appendTo(t testing.TB, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

// linesConfig keeps every record of one file input, with its position.
func linesConfig(path string, format Format, follow bool) Config {
	return Config{
		Schema: "CREATE TABLE lines (id INTEGER PRIMARY KEY, position TEXT, record TEXT)",
		Inputs: []Input{{
			Name: "in", File: &FileInput{Path: path, Format: format, Follow: follow},
			Apply: []string{"INSERT INTO lines (position, record) VALUES (:position, :record)"},
		}},
	}
}

func wantRows(t testing.TB, c *Circuit, text string, want ...string) {
	t.Helper()
	got := ask(t, c, text)
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Fatalf("%s\ngot:\n%s\nwant:\n%s", text, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func temp(t testing.TB, name string) string { return filepath.Join(t.TempDir(), name) }
