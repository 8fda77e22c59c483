package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/cairnsync/cairn/sdk"
)

// List walks the directories in the order of keys. Names that no key can have are not ours and are passed over, "lost+found" among them, as
// are those of removed files that an NFS client still keeps; a directory that cannot be read, and a link with the name of an object, are errors.
func (t *target) List(ctx context.Context, req sdk.ListRequest) iter.Seq2[sdk.Object, error] {
	return func(yield func(sdk.Object, error) bool) {
		err := t.call(ctx, "list", req.Prefix, t.open, func(root *os.Root) error {
			return t.list(root, &walker{ctx: ctx, root: root, req: req, yield: yield})
		})
		if err != nil && !errors.Is(err, errUnmade) {
			yield(sdk.Object{}, err)
		}
	}
}

func (t *target) list(root *os.Root, w *walker) error {
	var err error
	if dir, ok := firstDir(w.req.Prefix); ok {
		err = w.walk(dir)
	}
	if errors.Is(err, errStopped) {
		return nil
	}
	if err == nil {
		err = t.stillThere(root)
	}
	if err == nil {
		for _, temp := range w.temps {
			if t.now().Sub(temp.Modified) > tempMaxAge {
				_ = root.Remove(temp.Key) // an error leaves the file to the next time: it is only space
			}
		}
	}
	return err
}

// firstDir is the deepest directory that holds every key with the prefix; ok is false when there is no such key, as with "../a".
func firstDir(prefix string) (dir string, ok bool) {
	i := strings.LastIndexByte(prefix, '/')
	if i < 0 {
		return ".", true
	}
	return prefix[:i], sdk.CheckKey(prefix[:i]) == nil
}

// errStopped ends a walk whose consumer has heard enough.
var errStopped = errors.New("stopped")

type walker struct {
	ctx   context.Context
	root  *os.Root
	req   sdk.ListRequest
	yield func(sdk.Object, error) bool
	temps []sdk.Object
}

// entry is a name in a directory, with the key it has or begins.
type entry struct {
	fs.DirEntry
	key string // of a directory: with "/" at its end
}

func (w *walker) walk(dir string) error {
	entries, err := w.read(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := w.ctx.Err(); err != nil {
			return err
		}
		switch {
		case w.irrelevant(e.key):
		case e.IsDir():
			err = w.walk(path.Clean(e.key))
		default:
			err = w.object(e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// read lists a directory by the keys of its entries. "a-b" comes before what is in "a", for "-" is less than "/"; "a0" comes after.
func (w *walker) read(dir string) ([]entry, error) {
	f, err := w.root.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY, 0)
	if absent(err) && dir != "." {
		return nil, nil // no such prefix, or removed since as an empty directory
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	list, err := f.ReadDir(-1)
	if err != nil {
		return nil, fmt.Errorf("read directory %s: %w", dir, err)
	}
	entries := make([]entry, 0, len(list))
	for _, d := range list {
		e := entry{DirEntry: d, key: path.Join(dir, d.Name())}
		if d.IsDir() {
			e.key += "/"
		}
		switch {
		case strings.HasPrefix(d.Name(), tempPrefix):
			w.noteTemp(e)
		case strings.HasPrefix(d.Name(), nfsPrefix):
		case sdk.CheckKey(path.Clean(e.key)) == nil:
			entries = append(entries, e)
		}
	}
	slices.SortFunc(entries, func(a, b entry) int { return cmp.Compare(a.key, b.key) })
	return entries, nil
}

// irrelevant is true when neither the key nor, of a directory, any key in it can be asked for.
func (w *walker) irrelevant(key string) bool {
	below := strings.HasSuffix(key, "/")
	hasPrefix := strings.HasPrefix(key, w.req.Prefix) || below && strings.HasPrefix(w.req.Prefix, key)
	isAfter := key > w.req.StartAfter || below && strings.HasPrefix(w.req.StartAfter, key)
	return !hasPrefix || !isAfter
}

func (w *walker) object(e entry) error {
	if !e.Type().IsRegular() {
		return fmt.Errorf("%s: %w", e.key, errLink)
	}
	info, err := e.Info()
	if errors.Is(err, fs.ErrNotExist) {
		return nil // deleted since
	}
	if err != nil {
		return err
	}
	if !w.yield(sdk.Object{Key: e.key, Size: info.Size(), Modified: info.ModTime()}, nil) {
		return errStopped
	}
	return nil
}

func (w *walker) noteTemp(e entry) {
	if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
		w.temps = append(w.temps, sdk.Object{Key: e.key, Modified: info.ModTime()})
	}
}
