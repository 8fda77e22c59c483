package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"golang.org/x/sync/errgroup"
)

var (
	errMissing = errors.New("it is missing")
	errStray   = errors.New("the manifest does not list it")
)

// Verify compares every byte below dir (as Pinned.Dir gives it) with the manifest. A file that differs, is missing, is not regular
// or is not in the manifest is a *CorruptError; several are joined. A file that cannot be read for another reason is that error.
func Verify(ctx context.Context, dir string, m Manifest) error {
	if err := verify(ctx, dir, m.Files); err != nil {
		return fmt.Errorf("verify checkpoint %s: %w", m.ID, err)
	}
	return nil
}

func verify(ctx context.Context, dir string, files []File) error {
	if err := checkFiles(files); err != nil {
		return err
	}
	t, err := walk(dir)
	if errors.Is(err, errIrregular) || errors.Is(err, fs.ErrNotExist) {
		return &CorruptError{Path: dir, Err: err}
	}
	if err != nil {
		return err
	}
	bad := &problems{}
	if err := verifyFiles(ctx, dir, files, bad); err != nil {
		return err
	}
	wanted := make(map[string]struct{}, len(files))
	for _, f := range files {
		wanted[f.Path] = struct{}{}
	}
	for _, name := range t.files {
		if _, ok := wanted[name]; !ok {
			bad.add(corruptFile(dir, name, errStray))
		}
	}
	return bad.err()
}

// verifyFiles adds each difference to bad; it fails itself only when ctx ends.
func verifyFiles(ctx context.Context, dir string, files []File, bad *problems) error {
	h := newHasher()
	var group errgroup.Group
	group.SetLimit(syncsInFlight)
	for _, want := range files {
		group.Go(func() error {
			got, err := h.hash(ctx, dir, want.Path, nil)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err == nil {
				err = differs(want, got)
			}
			if err != nil {
				bad.add(faultOf(dir, want.Path, err))
			}
			return nil
		})
	}
	return group.Wait()
}

// faultOf tells damage from what merely hindered the reading.
func faultOf(dir, name string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		err = errMissing
	}
	for _, damage := range []error{errMissing, errDiffers, errChanged, errIrregular} {
		if errors.Is(err, damage) {
			return corruptFile(dir, name, err)
		}
	}
	return err
}

func corruptFile(dir, name string, err error) error {
	return &CorruptError{Path: filepath.Join(dir, name), Err: err}
}

var errDiffers = errors.New("its content is not what was published")

// differs compares content: sizes and chunks.
func differs(want, got File) error {
	if want.Size != got.Size {
		return fmt.Errorf("%w: it has %d bytes, not %d", errDiffers, got.Size, want.Size)
	}
	if !slices.Equal(want.Chunks, got.Chunks) {
		return fmt.Errorf("%w: chunk %d differs", errDiffers, firstDifference(want.Chunks, got.Chunks))
	}
	return nil
}

func firstDifference(a, b [][32]byte) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}
