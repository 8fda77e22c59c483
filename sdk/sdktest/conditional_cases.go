package sdktest

import (
	"bytes"
	"context"
	"fmt"
	"sync/atomic"

	"github.com/cairnsync/cairn/sdk"
)

func conditionalCases() []Case {
	return []Case{
		{"Put with IfAbsent stores an object under an absent key", Conditional, createAbsent},
		{"Put with IfAbsent of an existing key fails with Exists and changes nothing", Conditional, createExisting},
		{"of any number of concurrent Puts with IfAbsent exactly one succeeds, and its object is what is stored", Conditional, createRace},
		{"the same holds between two instances of a target", Conditional, createRaceOfTwo},
		{"the same holds for objects that do not travel inside a call", Conditional, createRaceLarge},
		{"a key that another instance has created is taken", Conditional, createTakenByOther},
		{"an object that was created can be replaced without IfAbsent", Conditional, createThenReplace},
		{"a key that was deleted can be created again", Conditional, createAgain},
		{"a failed Put with IfAbsent does not take the key", Conditional, createAfterFailure},
	}
}

func (e *Env) create(ctx context.Context, target sdk.Target, name string, content []byte) error {
	instance := *e
	instance.Target = target
	_, err := instance.store(ctx, sdk.PutRequest{Key: e.key(name), IfAbsent: true}, content)
	return err
}

func createAbsent(ctx context.Context, e *Env) error {
	for _, size := range []int{0, 100, sdk.MaxInline + 1} {
		name := fmt.Sprintf("created-%d", size)
		want := content(size, 1)
		if err := e.create(ctx, e.Target, name, want); err != nil {
			return fmt.Errorf("create of %d bytes: %w", size, err)
		}
		if err := e.holds(ctx, e.Target, name, want); err != nil {
			return err
		}
	}
	return nil
}

func createExisting(ctx context.Context, e *Env) error {
	for _, old := range [][]byte{content(500, 1), {}} {
		name := fmt.Sprintf("taken-%d", len(old))
		if err := e.put(ctx, name, old); err != nil {
			return err
		}
		for _, late := range [][]byte{content(500, 2), old, content(sdk.MaxInline+1, 3)} {
			if err := wantCode(e.create(ctx, e.Target, name, late), sdk.Exists, "create of an existing key"); err != nil {
				return err
			}
		}
		if err := e.holds(ctx, e.Target, name, old); err != nil {
			return err
		}
	}
	return nil
}

func createRace(ctx context.Context, e *Env) error {
	return e.race(ctx, e.Target, e.Target)
}

func createRaceOfTwo(ctx context.Context, e *Env) error {
	second, err := e.second(ctx)
	if err != nil {
		return err
	}
	return e.race(ctx, e.Target, second)
}

// race has 16 writers, half of them on each instance, create the same key, for many keys.
func (e *Env) race(ctx context.Context, one, two sdk.Target) error {
	const rounds, writers = 20, 16
	for round := range rounds {
		contents := make([][]byte, writers)
		for i := range contents {
			contents[i] = bytes.Repeat([]byte{byte(i)}, 1000+i)
		}
		if err := e.raceFor(ctx, fmt.Sprintf("raced-%d", round), []sdk.Target{one, two}, contents); err != nil {
			return err
		}
	}
	return nil
}

func createRaceLarge(ctx context.Context, e *Env) error {
	contents := make([][]byte, 4)
	for i := range contents {
		contents[i] = content(sdk.MaxInline+100_000*(i+1), uint64(i))
	}
	for round := range 4 {
		if err := e.raceFor(ctx, fmt.Sprintf("raced-large-%d", round), []sdk.Target{e.Target}, contents); err != nil {
			return err
		}
	}
	return nil
}

// raceFor has a writer for each content create name, in turn on the targets. One succeeds, and what it wrote is there.
func (e *Env) raceFor(ctx context.Context, name string, targets []sdk.Target, contents [][]byte) error {
	var winners atomic.Int64
	var won atomic.Pointer[[]byte]
	err := together(len(contents), func(worker int) error {
		err := e.create(ctx, targets[worker%len(targets)], name, contents[worker])
		if err == nil {
			winners.Add(1)
			won.Store(&contents[worker])
			return nil
		}
		return wantCode(err, sdk.Exists, "create that lost the race")
	})
	switch {
	case err != nil:
		return err
	case winners.Load() != 1:
		return fmt.Errorf("%d of %d concurrent creates succeed", winners.Load(), len(contents))
	}
	return e.holds(ctx, targets[len(targets)-1], name, *won.Load())
}

func createTakenByOther(ctx context.Context, e *Env) error {
	second, err := e.second(ctx)
	if err != nil {
		return err
	}
	for i, targets := range [][2]sdk.Target{{e.Target, second}, {second, e.Target}} {
		name := fmt.Sprintf("taken-by-other-%d", i)
		if err := e.create(ctx, targets[0], name, []byte("first")); err != nil {
			return fmt.Errorf("create: %w", err)
		}
		if err := wantCode(e.create(ctx, targets[1], name, []byte("second")), sdk.Exists, "create through the other instance"); err != nil {
			return err
		}
		if err := e.holds(ctx, targets[1], name, []byte("first")); err != nil {
			return err
		}
	}
	return nil
}

func createThenReplace(ctx context.Context, e *Env) error {
	if err := e.create(ctx, e.Target, "replaceable", []byte("created")); err != nil {
		return fmt.Errorf("create: %w", err)
	}
	if err := e.put(ctx, "replaceable", []byte("replaced")); err != nil {
		return err
	}
	return e.holds(ctx, e.Target, "replaceable", []byte("replaced"))
}

func createAgain(ctx context.Context, e *Env) error {
	for i := range 3 {
		if err := e.create(ctx, e.Target, "again", []byte{byte(i)}); err != nil {
			return fmt.Errorf("create number %d: %w", i+1, err)
		}
		if err := e.remove(ctx, "again"); err != nil {
			return err
		}
	}
	return nil
}

func createAfterFailure(ctx context.Context, e *Env) error {
	want := content(100, 1)
	bad := content(sdk.MaxInline+1000, 1)
	body, done, err := e.body(bad, sdk.SumsOf(want))
	if err != nil {
		return err
	}
	defer done()
	_, err = e.Target.Put(ctx, sdk.PutRequest{Key: e.key("once"), Body: body, IfAbsent: true})
	if err := wantCode(err, sdk.Corrupt, "create with a damaged body"); err != nil {
		return err
	}
	if err := e.create(ctx, e.Target, "once", want); err != nil {
		return fmt.Errorf("create after a failed one: %w", err)
	}
	return e.holds(ctx, e.Target, "once", want)
}
