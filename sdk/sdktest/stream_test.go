package sdktest_test

import (
	"context"
	"errors"
	"io"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cairnsync/cairn/sdk"
	"github.com/cairnsync/cairn/sdk/sdktest"
)

// oneFile is a store of one object, on disk, so that what is allocated is the examiner's.
type oneFile struct {
	dir    string
	stored atomic.Bool
}

func (s *oneFile) path() string { return filepath.Join(s.dir, "object") }

func (s *oneFile) Put(_ context.Context, req sdk.PutRequest) (sdk.PutResult, error) {
	f, err := os.Create(s.path())
	if err != nil {
		return sdk.PutResult{}, err
	}
	defer f.Close()
	if _, err := io.Copy(f, req.Body.Reader()); err != nil {
		return sdk.PutResult{}, err
	}
	s.stored.Store(true)
	return sdk.PutResult{}, nil
}

func (s *oneFile) Get(_ context.Context, req sdk.GetRequest) (sdk.GetResult, error) {
	f, err := os.Open(s.path())
	if err != nil {
		return sdk.GetResult{}, err
	}
	info, err := f.Stat()
	if err != nil {
		return sdk.GetResult{}, err
	}
	from, n, err := req.Range(info.Size())
	if err != nil {
		return sdk.GetResult{}, err
	}
	return sdk.GetResult{Body: struct {
		io.Reader
		io.Closer
	}{io.NewSectionReader(f, from, n), f}, Size: n}, nil
}

func (s *oneFile) List(context.Context, sdk.ListRequest) iter.Seq2[sdk.Object, error] {
	return func(func(sdk.Object, error) bool) {}
}

func (s *oneFile) Delete(context.Context, []string) error {
	s.stored.Store(false)
	return os.Remove(s.path())
}

func TestTheExaminerNeverHoldsALargeObjectInMemory(t *testing.T) {
	for _, spool := range []string{"", t.TempDir()} {
		store := &oneFile{dir: t.TempDir()}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if err := runOne(t, "an object of MaxObject bytes is stored and read back byte for byte", &sdktest.Env{Target: store, Spool: spool}); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		if allocated := (after.TotalAlloc - before.TotalAlloc) >> 20; allocated > 8 {
			t.Errorf("with the spool %q, %d MiB were allocated for an object of %d MiB", spool, allocated, sdk.MaxObject>>20)
		}
	}
}

func TestLevelsAreReadByTheirNames(t *testing.T) {
	levels, err := sdktest.ParseLevels("process, core,core")
	if err != nil || len(levels) != 2 || levels[0] != sdktest.Core || levels[1] != sdktest.Process {
		t.Errorf("levels %v, %v", levels, err)
	}
	for _, wrong := range []string{"", "cores", "core,,bulk"} {
		if _, err := sdktest.ParseLevels(wrong); err == nil {
			t.Errorf("%q is read", wrong)
		}
	}
}

func TestALevelIsPassedOnlyWhenEveryCaseOfItIs(t *testing.T) {
	result := func(level sdktest.Level, err error, skipped string) sdktest.Result {
		return sdktest.Result{Case: sdktest.Case{Level: level}, Err: err, Skipped: skipped}
	}
	wrong := errors.New("wrong")
	for _, c := range []struct {
		name    string
		results []sdktest.Result
		want    sdktest.Outcome
	}{
		{"all passed", []sdktest.Result{result(sdktest.Bulk, nil, ""), result(sdktest.Bulk, nil, "")}, sdktest.Passed},
		{"one was skipped", []sdktest.Result{result(sdktest.Bulk, nil, ""), result(sdktest.Bulk, nil, "no")}, sdktest.PassedWithSkips},
		{"all were skipped", []sdktest.Result{result(sdktest.Bulk, nil, "no")}, sdktest.NotExamined},
		{"one failed, one was skipped", []sdktest.Result{result(sdktest.Bulk, wrong, ""), result(sdktest.Bulk, nil, "no")}, sdktest.Failed},
	} {
		tallies := sdktest.Count(append(c.results, result(sdktest.Core, nil, "")))
		if len(tallies) != 2 || tallies[0].Outcome() != sdktest.Passed || tallies[1].Outcome() != c.want {
			t.Errorf("%s: %v", c.name, tallies)
		}
	}
}

func TestAnExamThatIsEndedSaysSo(t *testing.T) {
	mem := sdktest.NewMem()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	env := &sdktest.Env{Target: mem, Levels: []sdktest.Level{sdktest.Conditional}, Prefix: "mine"}
	seen := 0
	for r := range sdktest.Results(ctx, env) {
		if seen++; seen > 1 && r.Skipped == "" {
			t.Errorf("%q was run after the end", r.Case.Name)
		}
		cancel()
	}
	if seen != len(sdktest.Cases())-count(t, func(c sdktest.Case) bool { return c.Level != sdktest.Conditional }) {
		t.Errorf("%d results", seen)
	}
	if keys := mem.Keys(); len(keys) > 0 {
		t.Errorf("the exam left %q", keys)
	}
}

func count(t *testing.T, is func(sdktest.Case) bool) (n int) {
	t.Helper()
	for _, c := range sdktest.Cases() {
		if is(c) {
			n++
		}
	}
	return n
}

func TestAPanicOfTheTargetIsTheCasesFailure(t *testing.T) {
	target := &sdktest.Faulty{Target: sdktest.NewMem(), Before: func(_ context.Context, call sdktest.Call) error {
		if call.Op == "get" {
			panic("planted")
		}
		return nil
	}}
	env := &sdktest.Env{Target: target}
	env.Hurry(time.Second)
	if err := runOne(t, "Put of an existing key without IfAbsent replaces it", env); err == nil {
		t.Error("the case passes")
	}
}
