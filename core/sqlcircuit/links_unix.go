//go:build unix

package sqlcircuit

import (
	"os"
	"syscall"
)

// linked says that an open file still has a name somewhere. One that was deleted, or that another file was renamed over, has none.
func linked(f *os.File) bool {
	info, err := f.Stat()
	if err != nil {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return !ok || stat.Nlink > 0
}
