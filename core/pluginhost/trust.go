package pluginhost

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// maxLinks is how many symbolic links a path may lead through, as the kernel itself has it.
const maxLinks = 40

// checkTrust refuses a plugin that anybody but root and the user us could change or swap for another: by writing its file, by replacing
// something in a directory on the way to it, or by turning a symbolic link on that way. path is absolute.
func checkTrust(path string, us int) error {
	w := trustWalk{plugin: path, us: us}
	return w.follow(path)
}

// trustWalk goes from the root of the file system to a file, step by step, through the links that the kernel would follow.
type trustWalk struct {
	plugin string
	us     int
	links  int
}

func (w *trustWalk) follow(path string) error {
	at, todo := "/", parts(path)
	if err := w.step(at, len(todo) == 1); err != nil {
		return err
	}
	for len(todo) > 0 {
		next := filepath.Join(at, todo[0]) // ".." occurs in the target of a link only, and at has no link left in it
		todo = todo[1:]
		link, err := w.linkAt(next)
		if err != nil {
			return err
		}
		if link != "" {
			if filepath.IsAbs(link) {
				at = "/"
			}
			todo = slices.Concat(parts(link), todo)
			continue
		}
		at = next
		if err := w.step(at, len(todo) == 1); err != nil {
			return err
		}
	}
	return nil
}

// parts are the names of a path in order, ".." included.
func parts(path string) []string {
	return slices.DeleteFunc(strings.Split(path, "/"), func(name string) bool { return name == "" || name == "." })
}

// linkAt answers where the link at path leads, "" when it is none.
func (w *trustWalk) linkAt(path string) (string, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return "", w.unseen(path, err)
	}
	if info.Mode()&fs.ModeSymlink == 0 {
		return "", nil
	}
	if w.links++; w.links > maxLinks {
		return "", w.refuse(path, "one symbolic link too many", "name the file itself")
	}
	if err := w.owned(path, info); err != nil {
		return "", err
	}
	target, err := os.Readlink(path)
	if err != nil {
		return "", w.unseen(path, err)
	}
	return target, nil
}

// step looks at one directory, or at the file. A directory that all may write, /tmp for one, is harmless where its sticky bit lets nobody
// rename what is another's; the one that holds the plugin must be tight all the same, for its plugins are chosen by name.
func (w *trustWalk) step(path string, holdsPlugin bool) error {
	info, err := os.Lstat(path)
	if err != nil {
		return w.unseen(path, err)
	}
	if err := w.owned(path, info); err != nil {
		return err
	}
	sticky := info.IsDir() && info.Mode()&fs.ModeSticky != 0 && !holdsPlugin
	if info.Mode().Perm()&0o022 == 0 || sticky {
		return nil
	}
	return w.refuse(path, fmt.Sprintf("writable by others than its owner (mode %04o)", info.Mode().Perm()), "chmod go-w "+path)
}

func (w *trustWalk) owned(path string, info fs.FileInfo) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || stat.Uid == 0 || int(stat.Uid) == w.us {
		return nil
	}
	return w.refuse(path, fmt.Sprintf("owned by user %d, who could change it", stat.Uid), "chown -h "+strconv.Itoa(w.us)+" "+path)
}

func (w *trustWalk) unseen(path string, err error) error {
	return &StartError{
		Path: w.plugin, What: "cannot be checked, because of " + path, Err: err,
		Remedy: "let the user that runs cairn look into the directories on the way",
	}
}

func (w *trustWalk) refuse(path, what, remedy string) error {
	subject := "is "
	if path != w.plugin {
		subject = path + " on the way to it is "
	}
	return &StartError{
		Cause: CauseInsecure, Path: w.plugin, What: subject + what,
		Remedy: remedy + " (dev = true in the plugin block skips this check)",
	}
}
