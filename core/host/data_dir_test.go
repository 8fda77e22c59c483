package host

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// It was told as a plugin that cannot be asked what it takes. The system's answer is planted: root may write everywhere.
func TestADataDirThatCannotBeWrittenIsToldAsThat(t *testing.T) {
	denied := func(string, uint32) error { return syscall.EACCES }
	err := checkWritable("/var/lib/cairn", denied)
	if !errors.Is(err, syscall.EACCES) {
		t.Fatalf("got %v", err)
	}
	contains(t, err.Error(), "/var/lib/cairn is not writable", "permission denied", "name a folder")
	must(t, checkWritable(t.TempDir(), syscall.Access))
}

func TestADataDirThatCannotBeMadeIsToldAsThat(t *testing.T) {
	w := newWorld(t)
	must(t, os.WriteFile(w.path("file"), nil, 0o600))
	cfg := w.load(w.hcl(conf{data: filepath.Join("file", "below")}))
	_, err := New(cfg, quiet())
	if err == nil {
		t.Fatal("a host was built")
	}
	contains(t, err.Error(), "data_dir", "a file stands where a folder is needed", "name another folder")
}

func TestPluginsAreAskedFromElsewhereWhereTheDataDirCannotBeUsed(t *testing.T) {
	dir := t.TempDir()
	equal(t, "one that can", runFrom(dir, "scratch"), runtimeDir(dir))
	equal(t, "one that is not there", runFrom(filepath.Join(dir, "none"), "scratch"), filepath.Join("scratch", "run"))
}
