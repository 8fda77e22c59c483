package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// disk is the part of the operating system that durability hangs on. Tests put a recorder or a failing one in its place.
type disk interface {
	Sync(f *os.File) error // f is a file or a directory
	Rename(from, to string) error
}

type realDisk struct{}

func (realDisk) Sync(f *os.File) error        { return f.Sync() }
func (realDisk) Rename(from, to string) error { return os.Rename(from, to) }

// ReplaceFile gives path the content data, atomically and durably: temporary file, sync, rename, sync of the directory. The
// directory must exist. The file's mode is 0600.
func ReplaceFile(path string, data []byte) error { return replaceFile(realDisk{}, path, data) }

func replaceFile(d disk, path string, data []byte) error {
	dir, base := filepath.Split(path)
	f, err := os.CreateTemp(dir, "."+base+tempMark+"*")
	if err != nil {
		return fmt.Errorf("replace %s: %w", path, Explain(dir, err))
	}
	err = writeSynced(d, f, data)
	if err == nil {
		err = d.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("replace %s: %w", path, errors.Join(Explain(dir, err), os.Remove(f.Name())))
	}
	return syncDir(d, filepath.Dir(path))
}

// tempMark is in the name of every temporary file of ReplaceFile, which begins with a dot.
const tempMark = ".tmp-"

func isTemp(name string) bool {
	return strings.HasPrefix(name, ".") && strings.Contains(name[1:], tempMark)
}

// writeSynced writes, syncs and closes f.
func writeSynced(d disk, f *os.File, data []byte) error {
	_, err := f.Write(data)
	if err == nil {
		err = d.Sync(f)
	}
	return errors.Join(err, f.Close())
}

func syncDir(d disk, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	defer f.Close()
	if err := d.Sync(f); err != nil {
		return fmt.Errorf("sync directory %s: %w", path, err)
	}
	return nil
}

// MakeDirs is os.MkdirAll(path, 0700) whose result survives a power cut: the parent of each directory it makes is synced.
func MakeDirs(path string) error { return makeDirs(realDisk{}, path) }

func makeDirs(d disk, path string) error {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return nil
	case err == nil:
		return fmt.Errorf("make directory %s: a file of that name exists", path)
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("make directory: %w", err)
	}
	parent := filepath.Dir(path)
	if err := makeDirs(d, parent); err != nil {
		return err
	}
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make directory: %w", err)
	}
	return syncDir(d, parent)
}
