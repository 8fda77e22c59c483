package pluginhost

import (
	"bytes"
	"debug/elf"
	"debug/macho"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
)

// explainExec turns the kernel's refusal to execute the image into what is wrong with the plugin: the kernel has five words for it and
// says ENOENT of a file that exists. noexec = the copy lies on a file system mounted so.
func explainExec(plugin string, img image, noexec bool, err error) error {
	e := &StartError{Path: plugin, What: "cannot be executed", Err: err}
	switch {
	case noexec:
		e.Cause, e.What = CauseNoExec, "its private copy cannot run from "+filepath.Dir(img.path)+", which lies on a file system mounted noexec"
		e.Remedy = "choose a directory that may hold programs: " + whereRuntimeDir
	case errors.Is(err, syscall.ENFILE):
		e.What, e.Remedy = "cannot be started, for this machine has no room for more open files", "see which process holds so many, or raise the machine's limit (sysctl fs.file-max)"
	case errors.Is(err, syscall.EMFILE):
		e.What, e.Remedy = "cannot be started, for this host may open no more files", "raise its limit (ulimit -n, or LimitNOFILE in a systemd unit)"
	case errors.Is(err, syscall.ENOENT):
		e.Cause, e.What, e.Err = CauseInterpreter, missingInterpreter(img.path), nil
		e.Remedy = "install it; a plugin gets no PATH, so a script names its interpreter by absolute path"
	case errors.Is(err, syscall.ENOEXEC), errors.Is(err, syscall.EINVAL):
		e.Cause, e.What, e.Err = CauseFormat, describeFormat(img.path), nil
		e.Remedy = fmt.Sprintf("build it for %s/%s", runtime.GOOS, runtime.GOARCH)
	case errors.Is(err, syscall.EACCES):
		e.Cause, e.Remedy = CauseNotRunnable, "check its interpreter and the security policy of this machine"
	}
	return e
}

func missingInterpreter(path string) string {
	if line, ok := strings.CutPrefix(firstLine(path), "#!"); ok {
		if strings.HasSuffix(line, "\r") {
			return "is a script with Windows line ends, which make its interpreter " + strings.TrimSuffix(line, "\r") + `\r, and that does not exist`
		}
		if fields := strings.Fields(line); len(fields) > 0 {
			return "is a script and its interpreter " + fields[0] + " does not exist"
		}
		return "is a script that names no interpreter after #!"
	}
	if f, err := elf.Open(path); err == nil {
		defer func() { _ = f.Close() }() // read only
		for _, p := range f.Progs {
			if p.Type == elf.PT_INTERP {
				name, err := io.ReadAll(io.LimitReader(p.Open(), 4096))
				if err == nil {
					return "is a dynamic binary and its loader " + string(bytes.TrimRight(name, "\x00")) + " does not exist"
				}
			}
		}
	}
	return "needs an interpreter or loader that does not exist"
}

// missingLibrary finds in the last lines of a process what the dynamic loader misses: glibc's and musl's words for a library that is not there, and
// glibc's for one that is too old.
func missingLibrary(lines []string) string {
	form := regexp.MustCompile("(?:rror (?:while )?loading shared librar(?:ies|y):? ([^:]+): |: version `([^']+)' not found)")
	for _, line := range lines {
		if found := form.FindStringSubmatch(line); found != nil {
			return found[1] + found[2]
		}
	}
	return ""
}

func describeFormat(path string) string {
	if f, err := elf.Open(path); err == nil {
		defer func() { _ = f.Close() }() // read only
		return fmt.Sprintf("is an ELF program for %s (%s), not for this machine", strings.ToLower(strings.TrimPrefix(f.Machine.String(), "EM_")), f.OSABI)
	}
	if f, err := macho.Open(path); err == nil {
		defer func() { _ = f.Close() }() // read only
		return fmt.Sprintf("is a macOS program for %s, not for this machine", f.Cpu)
	}
	switch line := firstLine(path); {
	case line == "":
		return "is empty or begins with an empty line, not a program"
	case strings.HasPrefix(line, "MZ"):
		return "is a Windows program, not one for this machine"
	case strings.HasPrefix(line, "#!"):
		return "is a script that the kernel cannot run"
	default:
		return "is neither a program nor a script with a #! line"
	}
}

func firstLine(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	head := make([]byte, 256)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return ""
	}
	line, _, _ := bytes.Cut(head[:n], []byte("\n"))
	return string(line)
}
