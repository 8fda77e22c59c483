package sdktest_test

import (
	"context"
	"iter"
	"testing"
	"time"

	"github.com/cairnsync/cairn/sdk"
	"github.com/cairnsync/cairn/sdk/sdktest"
)

// fault is one defect that a real plugin could have, planted into mem. catches are the cases that must fail for it.
type fault struct {
	name    string
	plant   func(mem *sdktest.Mem) sdk.Target
	catches []string

	hurry time.Duration // 0 = the case may take its time
	after func()        // lets go of what the fault holds
}

// broken is a Target with some methods replaced.
type broken struct {
	*sdktest.Mem
	put    func(ctx context.Context, req sdk.PutRequest) (sdk.PutResult, error)
	get    func(ctx context.Context, req sdk.GetRequest) (sdk.GetResult, error)
	list   func(ctx context.Context, req sdk.ListRequest) iter.Seq2[sdk.Object, error]
	delete func(ctx context.Context, keys []string) error
}

func (b *broken) Put(ctx context.Context, req sdk.PutRequest) (sdk.PutResult, error) {
	if b.put == nil {
		return b.Mem.Put(ctx, req)
	}
	return b.put(ctx, req)
}

func (b *broken) Get(ctx context.Context, req sdk.GetRequest) (sdk.GetResult, error) {
	if b.get == nil {
		return b.Mem.Get(ctx, req)
	}
	return b.get(ctx, req)
}

func (b *broken) List(ctx context.Context, req sdk.ListRequest) iter.Seq2[sdk.Object, error] {
	if b.list == nil {
		return b.Mem.List(ctx, req)
	}
	return b.list(ctx, req)
}

func (b *broken) Delete(ctx context.Context, keys []string) error {
	if b.delete == nil {
		return b.Mem.Delete(ctx, keys)
	}
	return b.delete(ctx, keys)
}

func faults() []fault {
	var all []fault
	for _, some := range [][]fault{putFaults(), getFaults(), listFaults(), deleteFaults(), contextFaults(), conditionalFaults()} {
		all = append(all, some...)
	}
	return all
}

// forgetful is a store that loses everything when it is opened again.
func forgetful(mem *sdktest.Mem) *sdktest.Env {
	return &sdktest.Env{Target: mem, Reopen: func(context.Context) (sdk.Target, error) { return sdktest.NewMem(), nil }}
}

func TestEveryPlantedFaultFailsTheCasesThatNameIt(t *testing.T) {
	for _, f := range faults() {
		t.Run(f.name, func(t *testing.T) {
			for _, name := range f.catches {
				mem := sdktest.NewMem()
				target := f.plant(mem)
				env := &sdktest.Env{Target: target, Reopen: func(context.Context) (sdk.Target, error) { return target, nil }}
				if f.hurry > 0 {
					env.Hurry(f.hurry)
				}
				if err := runOne(t, name, env); err == nil {
					t.Errorf("the case %q passes", name)
				}
				if f.after != nil {
					f.after()
				}
			}
		})
	}
	if runOne(t, survives, forgetful(sdktest.NewMem())) == nil {
		t.Errorf("the case %q passes on a store that forgets", survives)
	}
}

const survives = "an object whose Put returned nil is there after a restart"

func TestACaseWithoutAPlantedFaultDoesNotCount(t *testing.T) {
	planted := map[string]bool{survives: true}
	for _, f := range faults() {
		for _, name := range f.catches {
			planted[name] = true
		}
	}
	for _, f := range processFaults() {
		for _, name := range f.catches {
			planted[name] = true
		}
	}
	seen := map[string]bool{}
	for _, c := range sdktest.Cases() {
		if !planted[c.Name] {
			t.Errorf("no planted fault fails the case %q", c.Name)
		}
		if seen[c.Name] {
			t.Errorf("two cases are named %q", c.Name)
		}
		seen[c.Name] = true
	}
	for name := range planted {
		if !seen[name] {
			t.Errorf("a planted fault names the case %q, which does not exist", name)
		}
	}
}

// runOne runs one case alone, by its name.
func runOne(t *testing.T, name string, e *sdktest.Env) error {
	t.Helper()
	for _, c := range sdktest.Cases() {
		if c.Name == name {
			results := sdktest.RunCase(t.Context(), c, e)
			if results.Skipped != "" {
				t.Fatalf("the case %q is skipped: %s", name, results.Skipped)
			}
			return results.Err
		}
	}
	t.Fatalf("there is no case %q", name)
	return nil
}
