package main

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/cairnsync/cairn/sdk"
)

// Deletes remove the directory that Puts are about to write into.
// CASES A21
func TestPutsAndDeletesInOneDirectoryDoNotDisturbEachOther(t *testing.T) {
	dir := t.TempDir()
	var workers sync.WaitGroup
	for w := range 8 {
		target := openTarget(t, dir) // as many processes
		target.sync = func(*os.File) error { return nil }
		workers.Go(func() {
			for i := range 50 {
				key := fmt.Sprintf("pack/1/%d/%d", i%2, w)
				if _, err := target.Put(t.Context(), request(key, "x")); err != nil {
					t.Errorf("put %s: %v", key, err)
				}
				if err := target.Delete(t.Context(), []string{key}); err != nil {
					t.Errorf("delete %s: %v", key, err)
				}
			}
		})
	}
	workers.Wait()
	if got := files(t, dir); len(got) > 0 {
		t.Errorf("left: %v", got)
	}
}

// Over NFS a link whose reply is lost is sent again, and then finds its own work.
func TestALinkThatMeetsItsOwnFileHasSucceeded(t *testing.T) {
	target := openTarget(t, t.TempDir())
	put(t, target, "other")
	root, err := target.open()
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	temp, err := target.createTemp(root, ".")
	if err != nil {
		t.Fatal(err)
	}
	defer temp.Close()
	own, err := temp.Stat()
	if err != nil {
		t.Fatal(err)
	}
	name := files(t, target.path)[0]
	for range 2 {
		if err := target.link(root, own, name, "epoch"); err != nil {
			t.Error(err)
		}
	}
	if err := target.link(root, own, name, "other"); !errors.Is(err, sdk.Exists) {
		t.Errorf("somebody else's object: %v", err)
	}
}
