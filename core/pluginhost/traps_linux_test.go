package pluginhost

import (
	"bytes"
	"crypto/tls"
	"debug/elf"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestAPluginIsTheFirstToGoWhenMemoryIsShortAndLeavesNoCore(t *testing.T) {
	opts, _ := testOptions(t)
	s := open(t, testSpec(t, "good"), opts)
	score, err := os.ReadFile(fmt.Sprintf("/proc/%d/oom_score_adj", s.PID()))
	if err != nil || strings.TrimSpace(string(score)) != "1000" {
		t.Errorf("its score is %q, %v", score, err)
	}
	limits, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", s.PID()))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(limits)) {
		if fields := strings.Fields(line); strings.HasPrefix(line, "Max core file size") && fields[4] != "0" {
			t.Error(line)
		}
	}
	if cwd, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", s.PID())); err != nil || cwd != s.session.dir.path {
		t.Errorf("it works in %s, %v", cwd, err)
	}
}

// A dynamic program of this machine, with the name of its first library changed to that of one that is nowhere.
func TestALibraryThatIsMissingIsNamed(t *testing.T) {
	content, err := os.ReadFile("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	program, err := elf.NewFile(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	libraries, err := program.ImportedLibraries()
	if err != nil || len(libraries) == 0 {
		t.Fatalf("/bin/sh is not dynamic: %v", err)
	}
	missing := "lib" + strings.Repeat("q", len(libraries[0])-3)
	content = bytes.ReplaceAll(content, append([]byte(libraries[0]), 0), append([]byte(missing), 0))
	opts, _ := testOptions(t)
	spec := testSpec(t, "good")
	spec.Path = planted(t, "cairn-plugin-dynamic", string(content), 0o700)
	_, err = Describe(t.Context(), spec, opts)
	wantStartError(t, err, CauseLibrary, "lacks the shared library "+missing, "CGO_ENABLED=0")
}

func TestTheWordsOfEachLoaderAreUnderstood(t *testing.T) {
	for line, want := range map[string]string{
		"/x/p: error while loading shared libraries: libssl.so.3: cannot open shared object file: No such file or directory": "libssl.so.3",
		"Error loading shared library libssl.so.3: No such file or directory (needed by /x/p)":                               "libssl.so.3",
		"/x/p: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.38' not found (required by /x/p)":                           "GLIBC_2.38",
		"cannot find my licence": "",
	} {
		if got := missingLibrary([]string{"before", line, "after"}); got != want {
			t.Errorf("%q: %q", line, got)
		}
	}
}

// The table of mounts says which hold no programs; of those that lie on each other the last one counts.
func TestTheMountOptionsOfADirectoryAreRead(t *testing.T) {
	table, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	noexec := map[string]bool{}
	for line := range strings.Lines(string(table)) {
		if fields := strings.Fields(line); !strings.Contains(fields[1], `\`) {
			noexec[fields[1]] = slices.Contains(strings.Split(fields[3], ","), "noexec")
		}
	}
	for point, want := range noexec {
		if info, err := os.Stat(point); err == nil && info.IsDir() && mountedNoexec(filepath.Join(point, "x")) != want {
			t.Errorf("%s: noexec is %v", point, want)
		}
	}
	if len(noexec) == 0 || mountedNoexec(planted(t, "x", "", 0o700)) {
		t.Error("the directory that plugins of this test run from is taken for noexec")
	}
}

// A socket lies where any process of this user can reach it; what keeps them out is the certificate that only the host holds.
func TestNobodyButTheHostIsAnsweredOnAPluginsSocket(t *testing.T) {
	opts, _ := testOptions(t)
	s := open(t, testSpec(t, "good"), opts)
	sockets, err := filepath.Glob(filepath.Join(s.session.dir.path, "*", "plugin*"))
	if direct, _ := filepath.Glob(filepath.Join(s.session.dir.path, "plugin*")); err == nil {
		sockets = append(sockets, direct...)
	}
	dialled := 0
	for _, path := range sockets {
		if info, err := os.Lstat(path); err != nil || info.Mode().Type() != os.ModeSocket {
			continue
		}
		dialled++
		other, err := newIdentity()
		if err != nil {
			t.Fatal(err)
		}
		for name, certificates := range map[string][]tls.Certificate{"no certificate": nil, "another's certificate": other.tls.Certificates} {
			if answer, err := answerOn(path, &tls.Config{InsecureSkipVerify: true, Certificates: certificates, NextProtos: []string{"h2"}}); err == nil {
				t.Errorf("%s: %d bytes: %q", name, len(answer), answer)
			}
		}
		if answer, err := answerOn(path, nil); err == nil && bytes.Contains(answer, []byte("grpc")) {
			t.Errorf("without TLS: %q", answer)
		}
	}
	if dialled != 1 {
		t.Fatalf("%d sockets among %q", dialled, sockets)
	}
	if err := put(t.Context(), s, "k"); err != nil {
		t.Errorf("the host itself: %v", err)
	}
}

// answerOn speaks HTTP/2 on a socket and gives what comes back after the settings.
func answerOn(path string, config *tls.Config) ([]byte, error) {
	conn, err := net.Dial("unix", path)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	if config != nil {
		conn = tls.Client(conn, config)
	}
	if _, err := io.WriteString(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"); err != nil {
		return nil, err
	}
	answer := make([]byte, 256)
	n, err := conn.Read(answer)
	return answer[:n], err
}

// The user of the processes is nobody where the tests run as root, whom the kernel lets in everywhere.
func TestAConcealedHostIsClosedToProcessesOfItsUser(t *testing.T) {
	for _, concealed := range []string{"", "1"} {
		path := planted(t, "cairn-plugin-test", "", 0o755)
		binary, err := testBinary()
		if err != nil {
			t.Fatal(err)
		}
		chmod(t, filepath.Dir(path), 0o755)
		if err := copyLoaded(binary, path); err != nil {
			t.Fatal(err)
		}
		host := exec.Command(path)
		host.Env = []string{roleVar + "=concealed", "CONCEAL=" + concealed, "OF_THE_HOST=secret of the host", "GORACE=atexit_sleep_ms=0"}
		if os.Geteuid() == 0 {
			host.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		}
		out, err := host.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if open := strings.Contains(string(out), "secret of the host"); open != (concealed == "") {
			t.Errorf("concealed %q: a child reads %q", concealed, out)
		}
	}
}

// playConcealed is a host whose child looks at its environment and descriptors.
func playConcealed() {
	if os.Getenv("CONCEAL") != "" {
		if err := Conceal(); err != nil {
			panic(err)
		}
	}
	look := exec.Command("/bin/sh", "-c", "cat /proc/$PPID/environ; ls /proc/$PPID/fd")
	look.Env = []string{"PATH=/bin:/usr/bin"}
	out, _ := look.CombinedOutput()
	fmt.Println(string(out))
}
