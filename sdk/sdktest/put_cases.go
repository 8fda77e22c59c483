package sdktest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"unicode"
	"unicode/utf8"

	"github.com/cairnsync/cairn/sdk"
)

func putCases() []Case {
	return []Case{
		{"Put stores an object that Get reads back byte for byte, whatever its size", Core, putSizes},
		{"Put takes keys of every allowed byte and of the greatest length", Core, putKeys},
		{"Put stores objects of both classes", Core, putClasses},
		{"Put of an existing key without IfAbsent replaces it", Core, putReplaces},
		{"a reader sees the old state or the complete object, never a part", Core, putIsNeverSeenInPart},
		{"an object whose Put returned nil is there after a restart", Core, putSurvives},
		{"a body whose digest does not agree is never stored", Core, putDamaged},
		{"a body that ends early is never stored", Core, putShort},
		{"a Put that fails leaves the old object as it was", Core, putFailureKeepsOld},
		{"a body whose file ends early is never stored", Core, putShortFile},
		{"a digest that Put answers is that of the content", Core, putAttests},
		{"a version that Put answers is a name for this content, in printable text", Core, putVersion},
		{"the same Put may come again", Core, putAgain},
		{"an object that is replaced while it is read is never a mix of the old and the new", Core, putWhileRead},
		{"Puts at the same time do not mix", Core, putConcurrently},
	}
}

func putSizes(ctx context.Context, e *Env) error {
	for _, size := range []int{0, 1, 4096, sdk.MaxInline - 1, sdk.MaxInline, sdk.MaxInline + 1, 5 << 20, 5<<20 + 1} {
		name := fmt.Sprintf("size-%d", size)
		want := content(size, 1)
		if err := e.put(ctx, name, want); err != nil {
			return err
		}
		if err := e.holds(ctx, e.Target, name, want); err != nil {
			return err
		}
	}
	return nil
}

func putKeys(ctx context.Context, e *Env) error {
	long := strings.Repeat("x", sdk.MaxSegment)
	names := []string{
		"abcdefghijklmnopqrstuvwxyz0123456789", "ABCDEFGHIJKLMNOPQRSTUVWXYZ.json", "a.b_c-d", "...", "-", "_", ".hidden", "a..b", long,
	}
	deepest := sdk.MaxKey - len(e.key(""))
	names = append(names, "deep/"+strings.Repeat("d/", (deepest-5-1)/2)+"e")
	folder := strings.Repeat("w", sdk.MaxSegment) // not long itself: no key is another's folder
	names = append(names, strings.Repeat(folder+"/", (deepest-1)/(sdk.MaxSegment+1))+strings.Repeat("y", (deepest-1)%(sdk.MaxSegment+1)+1))
	if err := e.putAll(ctx, names...); err != nil {
		return err
	}
	for _, name := range names {
		if err := e.holds(ctx, e.Target, name, []byte(name)); err != nil {
			return err
		}
	}
	return nil
}

func putClasses(ctx context.Context, e *Env) error {
	for _, class := range []sdk.Class{sdk.ClassMeta, sdk.ClassBulk} {
		name := fmt.Sprintf("class-%d", class)
		if _, err := e.store(ctx, sdk.PutRequest{Key: e.key(name), Class: class}, []byte(name)); err != nil {
			return fmt.Errorf("put of class %d: %w", class, err)
		}
		if err := e.holds(ctx, e.Target, name, []byte(name)); err != nil {
			return err
		}
	}
	return nil
}

func putReplaces(ctx context.Context, e *Env) error {
	for i, want := range [][]byte{content(3000, 1), content(10, 2), content(5000, 3), {}} {
		if err := e.put(ctx, "replaced", want); err != nil {
			return fmt.Errorf("version %d: %w", i, err)
		}
		if err := e.holds(ctx, e.Target, "replaced", want); err != nil {
			return fmt.Errorf("version %d: %w", i, err)
		}
	}
	return nil
}

func putIsNeverSeenInPart(ctx context.Context, e *Env) error {
	const rounds = 8
	versions := [][]byte{content(sdk.MaxInline, 1), content(sdk.MaxInline-4096, 2)}
	if err := e.put(ctx, "torn", versions[0]); err != nil {
		return err
	}
	var written atomic.Bool
	return together(3, func(worker int) error {
		if worker == 0 {
			defer written.Store(true)
			for i := range rounds {
				if err := e.put(ctx, "torn", versions[(i+1)%2]); err != nil {
					return err
				}
			}
			return nil
		}
		for !written.Load() {
			have, _, err := get(ctx, e.Target, whole(e.key("torn")))
			if err != nil {
				return fmt.Errorf("read while it is replaced: %w", err)
			}
			if !bytes.Equal(have, versions[0]) && !bytes.Equal(have, versions[1]) {
				return fmt.Errorf("read while it is replaced: %d bytes that are neither the old nor the new object", len(have))
			}
		}
		return nil
	})
}

func putSurvives(ctx context.Context, e *Env) error {
	want := content(70_000, 1)
	if err := e.put(ctx, "kept", want); err != nil {
		return err
	}
	again, err := e.second(ctx)
	if err != nil {
		return err
	}
	if _, _, err := get(ctx, again, whole(e.key("kept"))); err != nil && sdk.CodeOf(err) != sdk.NotFound {
		return fmt.Errorf("read kept back: %w\n%s", err, firstIsOpen)
	}
	return e.holds(ctx, again, "kept", want)
}

// putBroken puts content whose sums are those of something else. It is large enough to be read by the target itself.
func (e *Env) putBroken(ctx context.Context, name string) error {
	bad := content(sdk.MaxInline+1000, 1)
	sums := sdk.SumsOf(bad)
	bad[len(bad)/2] ^= 1
	body, done, err := e.body(bad, sums)
	if err != nil {
		return err
	}
	defer done()
	_, err = e.Target.Put(ctx, sdk.PutRequest{Key: e.key(name), Body: body})
	return wantCode(err, sdk.Corrupt, "put of a damaged body")
}

func putDamaged(ctx context.Context, e *Env) error {
	if err := e.putBroken(ctx, "damaged"); err != nil {
		return err
	}
	return e.absent(ctx, "damaged")
}

func putShort(ctx context.Context, e *Env) error {
	full := content(sdk.MaxInline/2, 1)
	body := sdk.NewBody(bytes.NewReader(full[:len(full)-1]), int64(len(full)), sdk.SumsOf(full))
	_, err := e.Target.Put(ctx, sdk.PutRequest{Key: e.key("short"), Body: body})
	if err := wantCode(err, sdk.Corrupt, "put of a body that ends early"); err != nil {
		return err
	}
	return e.absent(ctx, "short")
}

func putFailureKeepsOld(ctx context.Context, e *Env) error {
	old := content(2000, 1)
	if err := e.put(ctx, "old", old); err != nil {
		return err
	}
	if err := e.putBroken(ctx, "old"); err != nil {
		return err
	}
	return e.holds(ctx, e.Target, "old", old)
}

func putAttests(ctx context.Context, e *Env) error {
	want := content(1000, 1)
	res, err := e.store(ctx, sdk.PutRequest{Key: e.key("attested")}, want)
	if err != nil {
		return err
	}
	if res.SHA256 != [32]byte{} && res.SHA256 != sdk.SumsOf(want).SHA256 {
		return errors.New("the digest is neither zero nor that of the content")
	}
	return nil
}

// putShortFile is about a source that the target itself reads to its end, where there is one.
func putShortFile(ctx context.Context, e *Env) error {
	full := content(sdk.MaxInline+5000, 1)
	body, done, err := e.body(full, sdk.SumsOf(full))
	if err != nil {
		return err
	}
	defer done()
	if f, _ := body.File(); f != nil {
		if err := f.Truncate(int64(len(full)) - 1); err != nil {
			return fmt.Errorf("cut the spool file short: %w", err)
		}
	} else {
		body = sdk.NewBody(bytes.NewReader(full[:len(full)-1]), int64(len(full)), sdk.SumsOf(full))
	}
	_, err = e.Target.Put(ctx, sdk.PutRequest{Key: e.key("short-file"), Body: body})
	if err := wantCode(err, sdk.Corrupt, "put of a body whose file ends early"); err != nil {
		return err
	}
	return e.absent(ctx, "short-file")
}

// maxVersion is far above every ETag and generation there is.
const maxVersion = 1 << 10

func putVersion(ctx context.Context, e *Env) error {
	seen := map[string]int{}
	for i := range 3 {
		res, err := e.store(ctx, sdk.PutRequest{Key: e.key("versioned")}, content(100, uint64(i)))
		switch other, twice := seen[res.Version]; {
		case err != nil:
			return err
		case res.Version == "":
			continue
		case twice:
			return fmt.Errorf("contents %d and %d have the same version %q", other, i, res.Version)
		case len(res.Version) > maxVersion || !utf8.ValidString(res.Version) || strings.ContainsFunc(res.Version, unicode.IsControl):
			return fmt.Errorf("the version %.100q is not a name to print (%d bytes)", res.Version, len(res.Version))
		}
		seen[res.Version] = i
	}
	return nil
}

func putAgain(ctx context.Context, e *Env) error {
	want := content(3000, 1)
	for range 3 {
		if err := e.put(ctx, "repeated", want); err != nil {
			return fmt.Errorf("the same put again: %w", err)
		}
		if err := e.holds(ctx, e.Target, "repeated", want); err != nil {
			return err
		}
	}
	return e.listed(ctx, "", "", "repeated")
}

// putWhileRead lets a reader be in the middle of an object while that is replaced. It may fail then; it may not read a mixture.
func putWhileRead(ctx context.Context, e *Env) error {
	// More than the pipes between a store and its reader hold, so that the rest is read after the replacement.
	versions := [][]byte{content(5<<20, 1), content(5<<20, 2), content(4<<20, 3), content(5<<20+1, 4)}
	if err := e.put(ctx, "read", versions[0]); err != nil {
		return err
	}
	for i, old := range versions[:len(versions)-1] {
		res, err := e.Target.Get(ctx, whole(e.key("read")))
		if err != nil {
			return err
		}
		have := make([]byte, 100_000)
		if _, err := io.ReadFull(res.Body, have); err != nil {
			res.Body.Close()
			return fmt.Errorf("read the first bytes: %w", err)
		}
		if err := e.putBeside(ctx, res.Body, "read", versions[i+1]); err != nil {
			return err
		}
		rest, err := io.ReadAll(res.Body)
		res.Body.Close()
		if have = append(have, rest...); err == nil && !bytes.Equal(have, old) {
			return fmt.Errorf("a reader that began before the replacement ends well with %d bytes that are not the old object", len(have))
		}
	}
	return e.holds(ctx, e.Target, "read", versions[len(versions)-1])
}

// putBeside is put while a Body is open, which a failure closes. A store whose Put waits for the reader goes on when that is closed, also one
// that waits without regard to ctx.
func (e *Env) putBeside(ctx context.Context, open io.Closer, name string, content []byte) error {
	const hint = "a Get was open: does the store lock writers out while a Body is open?"
	limit := 5 * e.soon // the host gives such a Put 20 s, and says after 60 s that no byte has moved
	limited, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer within %s", limit))
	defer cancel()
	inTime := context.AfterFunc(limited, func() { open.Close() })
	err := e.put(limited, name, content)
	switch late := !inTime(); {
	case late && err == nil:
		return fmt.Errorf("put %s: it was done only when the reader had been closed, after %s; %s", name, limit, hint)
	case late:
		return fmt.Errorf("%w (%w); %s", err, context.Cause(limited), hint)
	case err != nil:
		open.Close()
		return fmt.Errorf("%w; %s", err, hint)
	}
	return nil
}

func putConcurrently(ctx context.Context, e *Env) error {
	return together(16, func(worker int) error {
		for i := range 4 {
			name := fmt.Sprintf("w%d-%d", worker, i)
			want := content(20_000, uint64(worker*4+i))
			if err := e.put(ctx, name, want); err != nil {
				return err
			}
			if err := e.holds(ctx, e.Target, name, want); err != nil {
				return err
			}
		}
		return nil
	})
}
