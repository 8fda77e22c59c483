//go:build unix

package checkpoint

import (
	"io/fs"
	"os"
	"syscall"
)

// inodeOf is zero when the file system does not tell.
func inodeOf(info fs.FileInfo) Inode {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return Inode{}
	}
	return Inode{Device: uint64(st.Dev), Number: st.Ino, ModifiedNs: info.ModTime().UnixNano()}
}

// openForReading opens path without following a link at its end and without waiting for the other end of a pipe.
func openForReading(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
}

// unlockFile gives the lock of f back, whoever else holds a copy of the descriptor.
func unlockFile(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }

// lockFile takes the lock of f or answers errLocked at once.
func lockFile(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == syscall.EWOULDBLOCK {
		return errLocked
	}
	return err
}
