package blobtarget

import (
	"context"
	"errors"
	"sync"

	"github.com/cairnsync/cairn/sdk"
)

// deletesAtOnce bounds the requests of one portable Delete.
const deletesAtOnce = 16

// Delete removes keys. See Hooks.Delete for which error is whose.
func (t *target) Delete(ctx context.Context, keys []string) error {
	if err := t.checkDelete(ctx, keys); err != nil {
		return err
	}
	if t.hooks.Delete == nil {
		return t.deleteEach(ctx, keys)
	}
	var errs []error
	for _, err := range leaves(t.hooks.Delete(ctx, keys)) {
		var e *sdk.Error
		if errors.As(err, &e) && e.Key != "" {
			errs = append(errs, t.failed(ctx, "delete", e.Key, err))
			continue
		}
		errs = append(errs, t.failed(ctx, "delete", "", err))
	}
	return errors.Join(errs...)
}

func (t *target) checkDelete(ctx context.Context, keys []string) error {
	if err := ctx.Err(); err != nil {
		return t.failed(ctx, "delete", "", err)
	}
	for _, key := range keys {
		if err := checkName(key); err != nil {
			return t.failed(ctx, "delete", key, err)
		}
	}
	return nil
}

// deleteEach is the portable Delete: a request for each key.
func (t *target) deleteEach(ctx context.Context, keys []string) error {
	errs := make([]error, len(keys))
	var workers sync.WaitGroup
	for w := range min(deletesAtOnce, len(keys)) {
		workers.Go(func() {
			for i := w; i < len(keys); i += deletesAtOnce {
				errs[i] = t.deleteOne(ctx, keys[i])
			}
		})
	}
	workers.Wait()
	return errors.Join(errs...)
}

func (t *target) deleteOne(ctx context.Context, key string) error {
	err := ctx.Err()
	if err == nil {
		err = t.bucket.Delete(ctx, key)
	}
	if err == nil {
		return nil
	}
	failure := t.failed(ctx, "delete", key, err)
	if failure.Code == sdk.NotFound {
		return nil
	}
	return failure
}

// leaves flattens joined errors.
func leaves(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, one := range joined.Unwrap() {
		all = append(all, leaves(one)...)
	}
	return all
}
