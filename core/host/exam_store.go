package host

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/cairnsync/cairn/sdk"
)

// usableLimit is how long a store may take over one small object before it counts as one that does not answer.
const usableLimit = 30 * time.Second

// TryStore stores, reads, lists and deletes a small object where the exam will. It fails when the store cannot be used at all: every case would
// then fail and say nothing of the plugin. Any other trouble is for the cases to tell.
func (e *Exam) TryStore(ctx context.Context) error { return usable(ctx, e.Target) }

func usable(ctx context.Context, t sdk.Target) error {
	limited, cancel := context.WithTimeout(ctx, usableLimit)
	defer cancel()
	err := tryStore(limited, t, "exam/"+rand.Text()+"/usable")
	switch {
	case err == nil || ctx.Err() != nil:
		return nil
	case limited.Err() != nil:
		err = fmt.Errorf("no answer within %s, so the store does not answer or the plugin hangs in the call: %w", usableLimit, err)
	case !slices.Contains([]sdk.Code{sdk.Unavailable, sdk.Unauthenticated, sdk.PermissionDenied, sdk.InvalidConfig, sdk.NoSpace}, sdk.CodeOf(err)):
		return nil
	}
	return fmt.Errorf("the store cannot be used: %w; nothing was examined", err)
}

// tryStore gives the first failure of the four methods on one object, which is gone afterwards if it can be.
func tryStore(ctx context.Context, t sdk.Target, key string) error {
	content := []byte("may be deleted\n")
	body := sdk.NewBody(strings.NewReader(string(content)), int64(len(content)), sdk.SumsOf(content))
	if _, err := t.Put(ctx, sdk.PutRequest{Key: key, Body: body}); err != nil {
		return err
	}
	read, listed, deleted := readObject(ctx, t, key), listObject(ctx, t, key), t.Delete(ctx, []string{key})
	for _, err := range []error{read, listed, deleted} {
		if err != nil {
			return err
		}
	}
	return nil
}

func readObject(ctx context.Context, t sdk.Target, key string) error {
	res, err := t.Get(ctx, sdk.GetRequest{Key: key, Length: -1})
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, res.Body)
	return errors.Join(err, res.Body.Close())
}

func listObject(ctx context.Context, t sdk.Target, key string) error {
	for _, err := range t.List(ctx, sdk.ListRequest{Prefix: key}) {
		if err != nil {
			return err
		}
	}
	return nil
}

// Advice is what can be done about an error of an exam: the plugin's hints, and the attributes that have a fault and were given no value.
func (c Candidate) Advice(err error) (hints, missing []string) {
	for _, fault := range faultsIn(err) {
		if fault.Hint != "" {
			hints = append(hints, fault.Hint)
		}
		if fault.Code == sdk.InvalidConfig && fault.Attribute != "" && c.Config == "" && !c.sets(fault.Attribute) {
			missing = append(missing, fault.Attribute)
		}
	}
	return hints, missing
}

// sets tells whether the settings give the attribute a value.
func (c Candidate) sets(attribute string) bool {
	return slices.ContainsFunc(c.Settings, func(setting string) bool {
		name, _, _ := strings.Cut(setting, "=")
		name, _, _ = strings.Cut(name, ".") // an element of a map
		return name == attribute
	})
}

// faultsIn are the errors of the SDK in a tree of errors.
func faultsIn(err error) []*sdk.Error {
	switch e := err.(type) {
	case *sdk.Error:
		return append([]*sdk.Error{e}, faultsIn(e.Err)...)
	case interface{ Unwrap() error }:
		return faultsIn(e.Unwrap())
	case interface{ Unwrap() []error }:
		var all []*sdk.Error
		for _, one := range e.Unwrap() {
			all = append(all, faultsIn(one)...)
		}
		return all
	}
	return nil
}
