package sdktest

import (
	"context"
	"fmt"

	"github.com/cairnsync/cairn/sdk"
)

func deleteCases() []Case {
	return []Case{
		{"a deleted object is neither read nor listed", Core, deleteRemoves},
		{"Delete of a missing key is success", Core, deleteMissing},
		{"Delete takes MaxDelete keys, there or not", Core, deleteMany},
		{"Delete removes exactly the keys it names, nothing below or beside them", Core, deleteExactly},
		{"a deleted key can be stored again", Core, deleteThenPut},
	}
}

func (e *Env) remove(ctx context.Context, names ...string) error {
	keys := make([]string, len(names))
	for i, name := range names {
		keys[i] = e.key(name)
	}
	if err := e.Target.Delete(ctx, keys); err != nil {
		return fmt.Errorf("delete of %d keys: %w", len(keys), err)
	}
	return nil
}

func deleteRemoves(ctx context.Context, e *Env) error {
	if err := e.putAll(ctx, "gone", "stays"); err != nil {
		return err
	}
	if err := e.remove(ctx, "gone"); err != nil {
		return err
	}
	if err := e.absent(ctx, "gone"); err != nil {
		return err
	}
	return e.listed(ctx, "", "", "stays")
}

func deleteMissing(ctx context.Context, e *Env) error {
	if err := e.remove(ctx, "never"); err != nil {
		return err
	}
	if err := e.put(ctx, "there", nil); err != nil {
		return err
	}
	if err := e.remove(ctx, "deep/in/nothing", "there", "never"); err != nil {
		return err
	}
	return e.remove(ctx, "there")
}

func deleteMany(ctx context.Context, e *Env) error {
	var all, there []string
	for i := range sdk.MaxDelete {
		name := fmt.Sprintf("many/%04d", i)
		all = append(all, name)
		if i%10 == 0 {
			there = append(there, name)
		}
	}
	if err := e.putAll(ctx, append(there, "other")...); err != nil {
		return err
	}
	if err := e.remove(ctx, all...); err != nil {
		return err
	}
	return e.listed(ctx, "", "", "other")
}

func deleteExactly(ctx context.Context, e *Env) error {
	if err := e.putAll(ctx, "tree/1", "tree/2/3", "tree-1", "treetop"); err != nil {
		return err
	}
	if err := e.remove(ctx, "tree", "tree/2", "tree/2/3"); err != nil {
		return err
	}
	return e.listed(ctx, "", "", "tree-1", "tree/1", "treetop")
}

func deleteThenPut(ctx context.Context, e *Env) error {
	for i := range 3 {
		want := content(100+i, 1)
		if err := e.put(ctx, "phoenix", want); err != nil {
			return err
		}
		if err := e.holds(ctx, e.Target, "phoenix", want); err != nil {
			return err
		}
		if err := e.remove(ctx, "phoenix"); err != nil {
			return err
		}
		if err := e.absent(ctx, "phoenix"); err != nil {
			return err
		}
	}
	return nil
}
