package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"syscall"

	"golang.org/x/sys/unix"
)

// Delete removes exactly one regular file for each key, then the directories that it left empty, and makes that durable.
func (t *target) Delete(ctx context.Context, keys []string) error {
	var errs []error
	err := t.call(ctx, "delete", "", t.open, func(root *os.Root) error {
		errs = t.delete(ctx, root, keys)
		return nil
	})
	if errors.Is(err, errUnmade) {
		return nil
	}
	return errors.Join(append(errs, err)...)
}

// delete returns the failures, each with its key.
func (t *target) delete(ctx context.Context, root *os.Root, keys []string) []error {
	var errs []error
	touched := map[string]string{} // directory → one of its keys, for the error
	for _, key := range keys {
		err := ctx.Err()
		if err == nil {
			err = t.remove(root, key)
		}
		if err != nil {
			errs = append(errs, failed("delete", key, err))
			continue
		}
		touched[path.Dir(key)] = key
	}
	for dir, key := range touched {
		if err := t.settle(root, dir); err != nil {
			errs = append(errs, failed("delete", key, err))
		}
	}
	return errs
}

// remove unlinks a file. A directory of that name is not the object: the key is missing, and that is success.
func (t *target) remove(root *os.Root, key string) error {
	info, err := root.Lstat(key)
	switch {
	case absent(err) || err == nil && info.IsDir():
		return t.stillThere(root)
	case err != nil:
		return t.explain(root, key, err)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s: %w", key, errLink)
	}
	return t.unlink(root, key, 0)
}

// settle makes removals from dir durable and removes it, and those above, while they are empty: otherwise each commit would leave
// an empty directory of packs behind for every listing to walk.
func (t *target) settle(root *os.Root, dir string) error {
	for ; dir != "."; dir = path.Dir(dir) {
		err := t.unlink(root, dir, unix.AT_REMOVEDIR)
		if errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ENOENT) {
			continue // somebody else removed it
		}
		if err != nil {
			break // not empty, or not ours to remove: an empty directory is no object
		}
		t.dirs.forget(dir)
	}
	err := t.syncDir(root, dir)
	if absent(err) {
		return nil
	}
	return err
}

// unlink is unlinkat(2): os.Root.Remove would remove a file or an empty directory, whichever it meets.
func (t *target) unlink(root *os.Root, name string, flags int) error {
	dir, err := root.Open(path.Dir(name))
	if err != nil {
		return err
	}
	defer dir.Close()
	err = unix.Unlinkat(int(dir.Fd()), path.Base(name), flags)
	if flags == 0 && errors.Is(err, syscall.ENOENT) {
		return nil
	}
	return err
}
