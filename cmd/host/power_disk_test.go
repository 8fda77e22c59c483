//go:build torture

package main

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// disk is a journalled file system in an image file, mounted so that it writes as little as it may before somebody asks for a sync: no commit of
// the journal within five minutes, no order between data and names, no flush at a rename that replaces a file. What the programs have
// written and not synced is in the kernel's memory and not in the image. So a copy of the image is what a power cut leaves at that moment.
type disk struct {
	t     *testing.T
	dir   string // where it is mounted
	image string
}

const diskOptions = "loop,noatime,commit=300,data=writeback,noauto_da_alloc"

// newDisk mounts an empty one until the test ends. shelf is where its image lies, a tmpfs: nothing here needs to survive the test.
func newDisk(t *testing.T, shelf, name string) *disk {
	t.Helper()
	d := &disk{t: t, dir: filepath.Join(shelf, name), image: filepath.Join(shelf, name+".img")}
	check(t, os.Mkdir(d.dir, 0o700))
	d.format()
	d.mount()
	t.Cleanup(d.unmount)
	return d
}

func (d *disk) path(name string) string { return filepath.Join(d.dir, name) }

// cut replaces the disk by what a power cut leaves of it. Nobody may be writing.
func (d *disk) cut() {
	d.t.Helper()
	d.run("cp", "--sparse=always", d.image, d.image+".cut")
	d.unmount() // this writes everything, into the image that is thrown away
	check(d.t, os.Rename(d.image+".cut", d.image))
	d.mount() // the journal is replayed
}

// burn replaces the disk by an empty one.
func (d *disk) burn() {
	d.t.Helper()
	d.unmount()
	check(d.t, os.Remove(d.image))
	d.format()
	d.mount()
}

func (d *disk) format() {
	d.t.Helper()
	f, err := os.Create(d.image)
	check(d.t, err)
	check(d.t, errors.Join(f.Truncate(96<<20), f.Close()))
	d.run("mkfs.ext4", "-q", "-F", d.image)
}

func (d *disk) mount() {
	d.t.Helper()
	d.run("mount", "-t", "ext4", "-o", diskOptions, d.image, d.dir)
}

// unmount waits for those who still look into it: the observer, a process that is just ending.
func (d *disk) unmount() {
	d.t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		out, err := exec.Command("umount", d.dir).CombinedOutput()
		if err == nil {
			return
		}
		select {
		case <-limit.C:
			d.t.Fatalf("unmount %s: %v: %s", d.dir, err, out)
		case <-tick.C:
		}
	}
}

func (d *disk) run(name string, args ...string) {
	d.t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		d.t.Fatalf("%s: %v: %s(this test needs root and loop devices)", name, err, out)
	}
}

// objects are the files below dir with their content. One that bears no final name, as temporary says, is none.
func objects(t *testing.T, dir string, temporary func(name string) bool) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || temporary(d.Name()) {
			return err
		}
		content, err := os.ReadFile(path)
		all[strings.TrimPrefix(path, dir+"/")] = string(content)
		return err
	})
	if !errors.Is(err, fs.ErrNotExist) { // a disk may have nothing on it yet
		check(t, err)
	}
	return all
}
