package sqlcircuit

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cairnsync/cairn/core/circuit"
)

// The test binary plays a host that is killed: TestMain hands over to crashChild when this variable names a directory.
const (
	crashDirEnv   = "CAIRN_SQLCIRCUIT_CRASH_DIR"
	crashStepsEnv = "CAIRN_SQLCIRCUIT_CRASH_STEPS" // after so many the child waits to be killed
)

const crashRecords = 4000

func crashConfig(dir string) Config {
	return Config{
		Now: time.Now,
		Schema: "CREATE TABLE seen (input TEXT, n INTEGER, times INTEGER, PRIMARY KEY (input, n)) WITHOUT ROWID; " +
			"CREATE TABLE total (id INTEGER PRIMARY KEY, sum INTEGER); INSERT INTO total VALUES (1, 0)",
		Inputs: []Input{
			{Name: "file", MaxBatch: 25, File: &FileInput{Path: filepath.Join(dir, "in*.csv"), Format: CSV}, Apply: crashApply("->> 'n'")},
			{Name: "http", HTTP: &HTTPInput{Format: NDJSON}, Apply: crashApply("+ 0")},
		},
	}
}

func crashApply(value string) []string {
	return []string{
		"INSERT INTO seen VALUES (:input, :record " + value + ", 1) ON CONFLICT DO UPDATE SET times = times + 1",
		"UPDATE total SET sum = sum + (:record " + value + ")",
	}
}

// crashChild runs the circuit, a client that resumes by its sequence number, and folds, until it is done or killed.
func crashChild(dir string) int {
	if err := runCrashChild(context.Background(), dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func runCrashChild(ctx context.Context, dir string) error {
	c, err := New(crashConfig(dir))
	if err != nil {
		return err
	}
	c.limits.foldMin, c.limits.foldMax = 64<<10, 64<<10
	woken := make(waker, 1)
	live := filepath.Join(dir, "live")
	if state, err := c.Inspect(ctx, live); err != nil {
		return fmt.Errorf("after %+v: %w", state, err)
	}
	if err := c.Open(ctx, circuit.Env{Dir: live, Wake: woken.wake}); err != nil {
		return err
	}
	sent := make(chan error, 1)
	go func() { sent <- sendFrom(ctx, c) }()
	most, _ := strconv.Atoi(os.Getenv(crashStepsEnv)) // none is 0: no limit
	steps := 0
	for !crashDone(c) {
		if facts := c.Facts(); facts.Buffered == 0 && !facts.StepAsked {
			<-woken
			continue
		}
		if _, err := c.Step(ctx); err != nil {
			return err
		}
		fmt.Println(c.step.Load()) // tells the parent that something is going on
		if steps++; steps == most {
			_, err := io.Copy(io.Discard, os.Stdin) // a parent that is late must still come before the end
			return err
		}
	}
	return errors.Join(<-sent, c.Close())
}

func sendFrom(ctx context.Context, c *Circuit) error {
	const perBatch = 20
	seq, err := c.Position(ctx, "http", "client")
	if err != nil {
		return err
	}
	for ; seq < crashRecords/perBatch; seq++ {
		text := strings.Builder{}
		for i := range perBatch {
			fmt.Fprintln(&text, int(seq)*perBatch+i+1)
		}
		if _, err := c.Ingest(ctx, "http", circuit.Batch{Source: "client", Seq: seq + 1, Body: strings.NewReader(text.String())}); err != nil {
			return err
		}
	}
	return nil
}

func crashDone(c *Circuit) bool {
	for _, in := range c.Stats().Inputs {
		if in.Applied < crashRecords {
			return false
		}
	}
	return true
}

func TestEachRecordCountsExactlyOnceHoweverOftenTheHostIsKilled(t *testing.T) {
	dir := t.TempDir()
	for i, part := range []string{"in1.csv", "in2.csv"} {
		text := strings.Builder{}
		text.WriteString("n\n")
		for n := range crashRecords / 2 {
			fmt.Fprintln(&text, i*crashRecords/2+n+1)
		}
		write(t, filepath.Join(dir, part), text.String())
	}
	if err := os.Mkdir(filepath.Join(dir, "live"), 0o700); err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	kills := 0
	for attempt := 0; ; attempt++ {
		lines := 1 + random.IntN(30) // steps until the kill
		if attempt >= 12 {
			lines = -1 // to the end
		}
		killed := crashOnce(t, dir, lines)
		if killed {
			kills++
			continue
		}
		break
	}
	t.Logf("killed %d times", kills)
	if kills < 5 {
		t.Errorf("only %d kills came before the end", kills)
	}
	wantCrashTables(t, filepath.Join(dir, "live", mainName))
}

// crashOnce starts the child and kills it after so many of its steps; false when it ended by itself.
func crashOnce(t *testing.T, dir string, steps int) (killed bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), crashDirEnv+"="+dir)
	if steps >= 0 {
		cmd.Env = append(cmd.Env, crashStepsEnv+"="+strconv.Itoa(steps+8)) // a kill may take so long
	}
	if _, err := cmd.StdinPipe(); err != nil { // Wait closes it
		t.Fatal(err)
	}
	errText := &strings.Builder{}
	cmd.Stderr = errText
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	buffer := make([]byte, 64)
	for seen := 0; ; {
		n, err := out.Read(buffer)
		if seen += strings.Count(string(buffer[:n]), "\n"); steps >= 0 && seen >= steps {
			_ = cmd.Process.Kill() // it may have ended a moment ago
			killed = true
			break
		}
		if err != nil {
			break
		}
	}
	if err := cmd.Wait(); err != nil && !killed {
		t.Fatalf("the child failed: %v\n%s", err, errText)
	}
	return killed
}

func wantCrashTables(t *testing.T, path string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var rows, times, least, most, sum, refused int64
	err = db.QueryRow("SELECT count(*), max(times), min(n), max(n), (SELECT sum FROM total), (SELECT count(*) FROM cairn_errors) FROM seen").
		Scan(&rows, &times, &least, &most, &sum, &refused)
	const n = crashRecords
	if err != nil || rows != 2*n || times != 1 || least != 1 || most != n || sum != n*(n+1) || refused != 0 {
		t.Errorf("%d rows, at most %d times, %d to %d, sum %d, %d refused; %v", rows, times, least, most, sum, refused, err)
	}
}
