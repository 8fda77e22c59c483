package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cairnsync/cairn/sdk"
)

// play is the other process.
func play(role, dir string) error {
	target := newTarget(context.Background(), dir, time.Now)
	defer target.Close()
	switch role {
	case "race":
		return raceForKeys(target)
	case "half":
		content := bytes.Repeat([]byte("x"), 4<<20)
		body := sdk.NewBody(&stopsHalfway{content: content}, int64(len(content)), sdk.SumsOf(content))
		_, err := target.Put(context.Background(), sdk.PutRequest{Key: "pack/1/object", Body: body})
		return err
	}
	return fmt.Errorf("unknown role %q", role)
}

const raceKeys = 4000

// raceForKeys creates every key, 16 at once, when it is told to begin, and prints which it won. Nothing is synced: that is another
// test's, and it would make the race slow and tame.
func raceForKeys(target *target) error {
	target.sync = func(*os.File) error { return nil }
	fmt.Println("ready")
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return err
	}
	var mu sync.Mutex
	won := []int{}
	var failures []error
	var workers sync.WaitGroup
	for w := range 16 {
		workers.Go(func() {
			for i := w; i < raceKeys; i += 16 {
				req := request(raceKey(i), fmt.Sprintf("%d of %d", i, os.Getpid()))
				req.IfAbsent = true
				_, err := target.Put(context.Background(), req)
				mu.Lock()
				if err == nil {
					won = append(won, i)
				} else if !errors.Is(err, sdk.Exists) {
					failures = append(failures, err)
				}
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	return errors.Join(errors.Join(failures...), json.NewEncoder(os.Stdout).Encode(won))
}

func raceKey(i int) string { return fmt.Sprintf("epoch/%02d/%04d", i%50, i) }

// stopsHalfway yields the first half, says so and never goes on.
type stopsHalfway struct {
	content []byte
	said    sync.Once
}

func (s *stopsHalfway) ReadAt(p []byte, off int64) (int, error) {
	if off >= int64(len(s.content))/2 {
		s.said.Do(func() { fmt.Println("ready") })
		os.Stdin.Read(make([]byte, 1)) // until killed
	}
	n := copy(p, s.content[off:])
	return n, nil
}

// other is a running process.
type other struct {
	*exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// start starts the test binary in a role and returns when it is ready.
func start(t *testing.T, role, dir string) *other {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "FILE_TEST_ROLE="+role, "FILE_TEST_DIR="+dir)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	o := &other{Cmd: cmd, in: in, out: bufio.NewReader(out)}
	if line, err := o.out.ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("%q, %v", line, err)
	}
	return o
}

// CASES A44
func TestOfTwoProcessesExactlyOneCreatesEachKey(t *testing.T) {
	dir := t.TempDir()
	both := []*other{start(t, "race", dir), start(t, "race", dir)}
	for _, o := range both {
		if _, err := o.in.Write([]byte("go\n")); err != nil {
			t.Fatal(err)
		}
	}
	winner := map[int]int{}
	for _, o := range both {
		var won []int
		if err := json.NewDecoder(o.out).Decode(&won); err != nil {
			t.Fatal(err)
		}
		if err := o.Wait(); err != nil {
			t.Fatal(err)
		}
		t.Logf("process %d created %d keys", o.Process.Pid, len(won))
		for _, i := range won {
			if winner[i] != 0 {
				t.Errorf("key %d was created twice", i)
			}
			winner[i] = o.Process.Pid
		}
	}
	if len(winner) != raceKeys {
		t.Errorf("%d keys were created, want %d", len(winner), raceKeys)
	}
	for i, pid := range winner {
		content, err := os.ReadFile(filepath.Join(dir, raceKey(i)))
		if want := fmt.Sprintf("%d of %d", i, pid); err != nil || string(content) != want {
			t.Fatalf("key %d holds %q, %v; want its winner's %q", i, content, err, want)
		}
	}
	if names := files(t, dir); len(names) != raceKeys {
		t.Errorf("%d files for %d keys", len(names), raceKeys)
	}
}

// CASES A70
func TestAPutThatIsKilledHalfwayLeavesNoObjectAndIsSweptADayLater(t *testing.T) {
	dir := t.TempDir()
	o := start(t, "half", dir)
	target := openTarget(t, dir)
	wantNothing := func() {
		t.Helper()
		if keys := keysOf(t, target, sdk.ListRequest{}); len(keys) > 0 {
			t.Errorf("listed: %v", keys)
		}
		_, err := target.Get(t.Context(), sdk.GetRequest{Key: "pack/1/object", Length: -1})
		wantCode(t, err, sdk.NotFound, "pack/1/object")
	}
	wantNothing()
	o.Process.Kill()
	o.Wait()
	wantNothing()

	left := files(t, dir)
	if len(left) != 1 || !strings.HasPrefix(filepath.Base(left[0]), tempPrefix) {
		t.Fatalf("left: %v", left)
	}
	target.now = func() time.Time { return time.Now().Add(tempMaxAge - time.Minute) }
	wantNothing()
	if got := files(t, dir); !slices.Equal(got, left) {
		t.Errorf("a file that may be alive was removed: %v", got)
	}
	target.now = func() time.Time { return time.Now().Add(tempMaxAge + time.Minute) }
	wantNothing()
	if got := files(t, dir); len(got) > 0 {
		t.Errorf("left a day later: %v", got)
	}
}
