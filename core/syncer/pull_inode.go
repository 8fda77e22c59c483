//go:build unix

package syncer

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/cairnsync/cairn/core/checkpoint"
)

// soleName says that a file has one name only: what is written to it is seen nowhere else.
func soleName(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Nlink == 1
}

// inodeOf is what the checkpoint's manifest noted of a file; zero when the file system does not tell.
func inodeOf(info fs.FileInfo) checkpoint.Inode {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return checkpoint.Inode{}
	}
	return checkpoint.Inode{Device: uint64(st.Dev), Number: st.Ino, ModifiedNs: info.ModTime().UnixNano()}
}

// openRegular opens a regular file for reading; it follows no link at the path's end and waits for no pipe.
func openRegular(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("open %s: not a regular file", path)
	}
	if err != nil {
		f.Close() // nothing was written through it
		return nil, err
	}
	return f, nil
}
