package pluginhost

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/hashicorp/go-hclog"

	"github.com/cairnsync/cairn/internal/wipe"
)

const (
	// socketName is the longest name that go-plugin's server gives its socket: "plugin" and a random uint32 in decimal.
	socketName = "plugin4294967295"
	// nameLength is that of a private directory: 8 characters of base 32, 40 bits, drawn anew when taken.
	nameLength = 8
	lockSuffix = ".lock"

	// whereRuntimeDir ends the remedies that ask for another runtime directory.
	whereRuntimeDir = "data_dir decides where it lies, or TMPDIR for a command that works without the host"
)

// CheckRuntimeDir refuses a directory so deep that a socket in it could not be bound: the kernel holds the path of a unix socket in a
// field of fixed size (108 bytes on Linux, 104 on darwin, one of them a NUL), and past it the error a plugin reports is unintelligible.
func CheckRuntimeDir(dir string) error {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("runtime directory %s: %w", dir, err)
	}
	var address syscall.RawSockaddrUnix
	limit := len(address.Path) - 1 - len("/") - nameLength - len("/") - len(socketName)
	if len(abs) > limit {
		return fmt.Errorf("runtime directory %s: its path has %d bytes, at most %d fit before the name of a unix socket; choose a shorter one: %s",
			abs, len(abs), limit, whereRuntimeDir)
	}
	return nil
}

// runtimeDir is the private directory of one process: its socket and the copy of its binary. The lock file beside it is held as long as
// the host that made it lives, so that a later host can tell the leftovers of a dead one.
type runtimeDir struct {
	path string
	lock *os.File
}

func newRuntimeDir(parent string) (*runtimeDir, error) {
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return nil, fmt.Errorf("runtime directory: %w", err)
	}
	info, err := os.Stat(parent)
	if err != nil {
		return nil, fmt.Errorf("runtime directory: %w", err)
	}
	if info.Mode().Perm()&0o022 != 0 {
		return nil, fmt.Errorf("runtime directory %s has mode %04o: others could replace what is run from it; chmod go-w %s",
			parent, info.Mode().Perm(), parent)
	}
	for {
		dir, err := tryRuntimeDir(filepath.Join(parent, strings.ToLower(rand.Text()[:nameLength])))
		if !errors.Is(err, fs.ErrExist) {
			return dir, err
		}
	}
}

// tryRuntimeDir answers fs.ErrExist when the name is taken, also by a sweeper that found the lock file in the instant before it was locked.
func tryRuntimeDir(path string) (*runtimeDir, error) {
	lock, err := os.OpenFile(path+lockSuffix, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("runtime directory: %w", err)
	}
	d := &runtimeDir{path: path, lock: lock}
	if !tryLock(lock) || !stillAt(lock, path+lockSuffix) {
		lock.Close()
		return nil, fs.ErrExist
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		defer lock.Close()
		return nil, fmt.Errorf("runtime directory: %w", errors.Join(err, os.Remove(path+lockSuffix)))
	}
	return d, nil
}

// remove deletes the directory and frees its name. The lock file goes last and stays when the directory does, which a plugin may have filled with
// more than can be removed before stop: then a later sweep goes on.
func (d *runtimeDir) remove(stop <-chan struct{}) error {
	defer d.lock.Close()
	if err := wipe.Tree(d.path, stop); err != nil {
		return err
	}
	return os.Remove(d.path + lockSuffix)
}

// sweepRuntimeDirs removes what hosts that are dead left below parent. It never signals a process: the number a dead host knew may be
// someone else's by now, and its plugins have died with it. It ends early when stop is closed.
func sweepRuntimeDirs(parent string, stop <-chan struct{}, log hclog.Logger) {
	entries, err := os.ReadDir(parent) // not a pattern: data_dir may hold its special characters
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		log.Warn("runtime directories not swept", "error", err)
	}
	for _, entry := range entries {
		if len(entry.Name()) != nameLength+len(lockSuffix) || !strings.HasSuffix(entry.Name(), lockSuffix) {
			continue
		}
		name := filepath.Join(parent, entry.Name())
		lock, err := os.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			continue // gone meanwhile, or not ours: then it is not ours to remove
		}
		if tryLock(lock) && stillAt(lock, name) {
			dead := &runtimeDir{path: strings.TrimSuffix(name, lockSuffix), lock: lock}
			if err := dead.remove(stop); err != nil {
				log.Warn("runtime directory of a dead host not removed", "dir", dead.path, "error", err)
				continue
			}
			log.Debug("removed the runtime directory of a dead host", "dir", dead.path)
			continue
		}
		lock.Close()
	}
}

func tryLock(f *os.File) bool {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}

// stillAt reports whether path still names the open file: a lock on an unlinked file protects nothing.
func stillAt(f *os.File, path string) bool {
	open, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Lstat(path)
	return err == nil && os.SameFile(open, named)
}
