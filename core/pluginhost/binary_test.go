package pluginhost

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// planted writes a file as a plugin and answers its path.
func planted(t *testing.T, name, content string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(shortDir(t), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func wantStartError(t *testing.T, err error, cause Cause, texts ...string) {
	t.Helper()
	var start *StartError
	if !errors.As(err, &start) {
		t.Fatalf("got %v, want a StartError", err)
	}
	if start.Cause != cause {
		t.Errorf("cause %d, want %d: %v", start.Cause, cause, err)
	}
	for _, text := range append(texts, start.Path) {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%q does not say %q", err, text)
		}
	}
	if start.Remedy == "" || !strings.Contains(err.Error(), start.Remedy) {
		t.Errorf("%q names no remedy", err)
	}
}

func TestAPluginFileThatMustNotRunIsRefusedWithItsRemedy(t *testing.T) {
	sub := filepath.Join(shortDir(t), "bin")
	if err := os.Mkdir(sub, 0o700); err != nil {
		t.Fatal(err)
	}
	loose := filepath.Join(sub, "p")
	if err := os.WriteFile(loose, []byte("x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(sub, 0o777); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(shortDir(t), "link")
	if err := os.Symlink(loose, link); err != nil {
		t.Fatal(err)
	}
	fifo := filepath.Join(shortDir(t), "fifo")
	if err := syscall.Mkfifo(fifo, 0o700); err != nil {
		t.Fatal(err)
	}
	circle := filepath.Join(shortDir(t), "circle")
	if err := os.Symlink(circle, circle); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name  string
		spec  Spec
		cause Cause
		says  string
	}{
		{"absent", Spec{Path: "/nowhere/cairn-plugin-x"}, CauseNotFound, "there is no such file"},
		{"below a file", Spec{Path: filepath.Join(fifo, "cairn-plugin-x")}, CauseNotFound, "a part of its path is no directory"},
		{"a link to itself", Spec{Path: circle}, CauseNotFound, "leads back to itself"},
		{"a directory", Spec{Path: sub}, CauseNotRunnable, "not a regular file"},
		{"a FIFO that nobody writes", Spec{Path: fifo}, CauseNotRunnable, "not a regular file"},
		{"not executable", Spec{Path: planted(t, "p", "x", 0o644)}, CauseNotRunnable, "chmod +x"},
		{"writable by the group", Spec{Path: planted(t, "p", "x", 0o770)}, CauseInsecure, "mode 0770"},
		{"writable by all", Spec{Path: planted(t, "p", "x", 0o757)}, CauseInsecure, "chmod go-w"},
		{"in a directory that is writable by all", Spec{Path: loose}, CauseInsecure, sub + " on the way to it is writable"},
		{"linked from a tight directory into a loose one", Spec{Path: link}, CauseInsecure, sub + " on the way to it is writable"},
		{"of another checksum", Spec{Path: planted(t, "p", "x", 0o700), Checksum: "sha256:" + strings.Repeat("0", 64)}, CauseChecksum, "sha256:2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := copyImage(t.Context(), row.spec, shortDir(t))
			wantStartError(t, err, row.cause, row.says)
		})
	}
}

// A path that names some huge file by mistake must not fill the disk of the states with its copy.
func TestAFileThatIsTooLargeForAPluginIsNotCopied(t *testing.T) {
	path := planted(t, "cairn-plugin-x", "#!/bin/sh\n", 0o700)
	if err := os.Truncate(path, maxImage+1); err != nil { // sparse: it takes no room
		t.Fatal(err)
	}
	dir := shortDir(t)
	_, err := copyImage(t.Context(), Spec{Path: path}, dir)
	wantStartError(t, err, CauseNotRunnable, "1073741825 bytes")
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("a copy was begun: %v, %v", left, err)
	}
}

func TestAFileThatIsTooLargeForAPluginIsNotHashed(t *testing.T) {
	path := planted(t, "cairn-plugin-x", "#!/bin/sh\n", 0o700)
	if err := os.Truncate(path, maxImage+1); err != nil {
		t.Fatal(err)
	}
	_, err := Hash(t.Context(), path)
	if err == nil || !strings.Contains(err.Error(), "1073741825 bytes") || !strings.Contains(err.Error(), "name the plugin's binary") {
		t.Errorf("got %v", err)
	}
}

func TestAHashEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if sum, err := Hash(ctx, planted(t, "p", "some program", 0o755)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %q, %v", sum, err)
	}
}

func TestDevSkipsTheChecksumAndThePermissions(t *testing.T) {
	path := planted(t, "p", "x", 0o777)
	if _, err := copyImage(t.Context(), Spec{Path: path, Dev: true, Checksum: "sha256:" + strings.Repeat("0", 64)}, shortDir(t)); err != nil {
		t.Error(err)
	}
}

func TestTheChecksumThatHashPrintsIsAccepted(t *testing.T) {
	path := planted(t, "p", "some program", 0o755)
	sum, err := Hash(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	img, err := copyImage(t.Context(), Spec{Path: path, Checksum: sum}, shortDir(t))
	if err != nil || formatChecksum(img.sha256) != sum {
		t.Errorf("%v, %v", img, err)
	}
}

// swapped replaces a file while it is being copied.
type swapped struct {
	io.Reader
	swap func()
}

func (s swapped) Read(p []byte) (int, error) {
	s.swap()
	return s.Reader.Read(p[:1])
}

func TestWhatIsHashedIsWhatRunsWhateverHappensToTheOriginal(t *testing.T) {
	path := planted(t, "p", "old old old", 0o755)
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n := 0
	copied := filepath.Join(shortDir(t), "copy")
	sum, err := writeImage(t.Context(), swapped{f, func() {
		if n++; n == 4 {
			if err := os.WriteFile(path, []byte("new new new"), 0o755); err != nil { // in place: the worst an upgrade can do
				t.Error(err)
			}
		}
	}}, copied)
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(copied)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(content, []byte("old new new")) {
		t.Fatalf("the copy is %q: the swap did not happen in the middle", content)
	}
	if want, err := Hash(t.Context(), copied); err != nil || formatChecksum(sum) != want {
		t.Errorf("the sum is that of something else than the copy: %v", err)
	}
}

func TestACopyEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := copyImage(ctx, Spec{Path: planted(t, "p", "x", 0o700)}, shortDir(t))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestACatalogResolvesNamesAndNothingElse(t *testing.T) {
	c := Catalog{Dir: "/opt/bin", Paths: map[string]string{"mine": "/srv/mine.py"}}
	for name, want := range map[string]string{"s3": "/opt/bin/cairn-plugin-s3", "mine": "/srv/mine.py"} {
		if got, err := c.Path(name); err != nil || got != want {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
	for _, name := range []string{"", ".", "..", "../x", "a/b", "a\x00"} {
		if got, err := c.Path(name); err == nil {
			t.Errorf("%q is resolved to %s", name, got)
		}
	}
}

func TestAForeignFileInThePluginDirectoryIsNotEvenListed(t *testing.T) {
	dir := shortDir(t)
	for _, name := range []string{"cairn-plugin-b", "cairn-plugin-a", "README", "cairn-plugin-", "cairn"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if names, err := (Catalog{Dir: dir}).Names(); err != nil || strings.Join(names, ",") != "a,b" {
		t.Errorf("%v, %v", names, err)
	}
	if names, err := (Catalog{Dir: dir + "/none"}).Names(); err != nil || len(names) != 0 {
		t.Errorf("%v, %v", names, err)
	}
}

func TestAChecksumIsExactlyItsForm(t *testing.T) {
	hex := strings.Repeat("ab", 32)
	if _, err := parseChecksum("sha256:" + hex); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"", hex, "sha256:", "sha256:" + hex[:63], "sha256:" + hex + "0", "sha256:" + hex[:63] + "g", "md5:" + hex} {
		if _, err := parseChecksum(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

func TestTheEnvironmentIsTheProtocolAndWhatTheOperatorWrote(t *testing.T) {
	protocol := []string{"PATH=/bin", "HOME=/root", "PLUGIN_MIN_PORT=1", "PLUGIN_UNIX_SOCKET_DIR=/theirs", "PLUGIN_CLIENT_CERT=a\nb=c"}
	got := environment(protocol, "/ours", Spec{Env: map[string]string{"HTTPS_PROXY": "p"}, MemoryLimit: 1000})
	want := "GOMEMLIMIT=900|HTTPS_PROXY=p|PLUGIN_CLIENT_CERT=a\nb=c|PLUGIN_MIN_PORT=1|PLUGIN_UNIX_SOCKET_DIR=/ours|TMPDIR=/ours"
	if strings.Join(got, "|") != want {
		t.Errorf("got %q", got)
	}
}
