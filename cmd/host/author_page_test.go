package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cairnsync/cairn/internal/testaddr"
)

// TestThePageForPluginAuthorsIsTrue runs docs/plugin-author.md from top to bottom as its reader would, in one shell:
//
//   - a block marked `console` holds commands, each after "$ ", and what they print; "…" stands for anything, alone on a line for any lines;
//   - a block marked `LANGUAGE file=NAME` is written to that file;
//   - a command below `<!-- until -->` is repeated until it prints what the page says.
//
// Every command must succeed. Other blocks are for reading.
func TestThePageForPluginAuthorsIsTrue(t *testing.T) {
	page := readPage(t, "../../docs/plugin-author.md")
	address, err := testaddr.Reserve(t.Cleanup)
	if err != nil {
		t.Fatal(err)
	}
	sh := startShell(t, append(goEnv(t), "CAIRN="+sourceTree(t), "CAIRN_ADDRESS="+address))
	commands := 0
	for _, block := range page {
		switch {
		case block.file != "":
			sh.run(t, fmt.Sprintf("cat >%s <<'END_OF_THE_BLOCK'\n%sEND_OF_THE_BLOCK", block.file, block.text))
		case block.language == "console":
			for _, c := range block.commands(t) {
				commands++
				c.line, c.want = strings.ReplaceAll(c.line, pageAddress, address), strings.ReplaceAll(c.want, pageAddress, address)
				sh.try(t, c, block.until)
			}
		}
	}
	if commands < 10 {
		t.Errorf("only %d commands are on the page", commands)
	}
}

// pageAddress is where the page's host listens.
const pageAddress = "127.0.0.1:7070"

// TestTheBucketOfThePageIsAPlugin builds the page's plugin over a gocloud driver inside this module, whose go.mod has gocloud.
func TestTheBucketOfThePageIsAPlugin(t *testing.T) {
	source := ""
	for _, block := range readPage(t, "../../docs/plugin-author.md") {
		if block.language == "go" && block.info == "bucket" {
			source = block.text
		}
	}
	dir := t.TempDir()
	file, overlay, plugin := filepath.Join(dir, "main.go"), filepath.Join(dir, "overlay.json"), filepath.Join(dir, "cairn-plugin-bucket")
	replaced := fmt.Sprintf(`{"Replace": {%q: %q}}`, filepath.Join(sourceTree(t), "docs/bucket/main.go"), file)
	for name, text := range map[string]string{file: source, overlay: replaced} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-overlay", overlay, "-o", plugin, "./docs/bucket")
	build.Dir = sourceTree(t)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := exec.CommandContext(t.Context(), "cairn", "plugin", "info", plugin).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "bucket 0.1.0") {
		t.Errorf("%v\n%s", err, out)
	}
	if lines := strings.Count(source, "\n"); lines > 45 {
		t.Errorf("the page promises about 30 lines and shows %d", lines)
	}
}

func sourceTree(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// goEnv is the environment of a plugin author who has everything downloaded: no command of the page may need the network.
func goEnv(t *testing.T) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", "GOCACHE", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	dirs := strings.Fields(string(out))
	return []string{"GOCACHE=" + dirs[0], "GOMODCACHE=" + dirs[1], "GOPROXY=off", "GOFLAGS=", "GOTOOLCHAIN=local"}
}

// block is a fenced block of the page.
type block struct {
	language, info, file, text string
	line                       int
	until                      bool
}

func readPage(t *testing.T, name string) []block {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var blocks []block
	var open *block
	until := false
	line := 0
	for text := range strings.Lines(string(content)) {
		line++
		fence, isFence := strings.CutPrefix(text, "```")
		switch {
		case isFence && open == nil:
			language, info, _ := strings.Cut(strings.TrimSpace(fence), " ")
			file, _ := strings.CutPrefix(info, "file=")
			open = &block{language: language, info: info, line: line, until: until}
			if file != info {
				open.file = file
			}
			until = false
		case isFence:
			blocks = append(blocks, *open)
			open = nil
		case open != nil:
			open.text += text
		case strings.TrimSpace(text) == "<!-- until -->":
			until = true
		}
	}
	if open != nil {
		t.Fatalf("%s: the block of line %d does not end", name, open.line)
	}
	return blocks
}

// command is one command of the page and what it prints.
type command struct {
	line, want string
	at         int // line of the page
}

func (b block) commands(t *testing.T) []command {
	t.Helper()
	var commands []command
	at := b.line
	for text := range strings.Lines(b.text) {
		at++
		if line, ok := strings.CutPrefix(text, "$ "); ok {
			commands = append(commands, command{line: strings.TrimSpace(line), at: at})
			continue
		}
		if len(commands) == 0 {
			t.Fatalf("line %d of the page: output without a command", at)
		}
		commands[len(commands)-1].want += text
	}
	return commands
}

var blanks = regexp.MustCompile(`[ \t]+`)

// matches compares what was printed with what the page shows; how columns are aligned does not count.
func (c command) matches(have string) bool {
	pattern := ""
	for line := range strings.Lines(blanks.ReplaceAllString(c.want, " ")) {
		if line = strings.TrimRight(line, " \n"); line == "…" {
			pattern += `(?:[^\n]*\n)*?`
			continue
		}
		pattern += strings.ReplaceAll(regexp.QuoteMeta(line), "…", `[^\n]*`) + ` ?\n`
	}
	return regexp.MustCompile(`\A` + pattern + `\z`).MatchString(blanks.ReplaceAllString(have, " "))
}

// shell is a session of sh, in an empty folder.
type shell struct {
	in     io.Writer
	out    *bufio.Reader
	number int
}

func startShell(t *testing.T, env []string) *shell {
	t.Helper()
	dir, err := os.MkdirTemp("", "page-") // not t.TempDir: a path of that length is too long for the host's sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	cmd := exec.Command("sh")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // a host that a failed test has left behind
		_ = cmd.Wait()
	})
	sh := &shell{in: in, out: bufio.NewReader(out)}
	sh.run(t, "trap 'kill 0' EXIT") // should this process be killed, the shell's input ends, and a host that it has started with it
	return sh
}

// run gives the output and the exit code of a command, which may be several lines.
func (s *shell) run(t *testing.T, line string) (output string, code int) {
	t.Helper()
	s.number++
	mark := fmt.Sprintf("@@%d:", s.number)
	if _, err := fmt.Fprintf(s.in, "%s\nprintf '\\n%s%%d\\n' $?\n", line, mark); err != nil {
		t.Fatal(err)
	}
	for {
		text, err := s.out.ReadString('\n')
		if err != nil {
			t.Fatalf("the shell ended at %q: %v\n%s", line, err, output)
		}
		if end, ok := strings.CutPrefix(text, mark); ok {
			code, err := strconv.Atoi(strings.TrimSpace(end))
			if err != nil {
				t.Fatal(err)
			}
			return strings.TrimSuffix(output, "\n"), code
		}
		output += text
	}
}

// try demands that a command succeeds and prints what the page says, within a minute when it is one to repeat.
func (s *shell) try(t *testing.T, c command, until bool) {
	t.Helper()
	deadline := time.After(time.Minute)
	for {
		have, code := s.run(t, c.line)
		if code == 0 && c.matches(have) {
			return
		}
		report := func() {
			logs, _ := s.run(t, "tail -n 20 *.log")
			t.Fatalf("docs/plugin-author.md, line %d: %s\nexits with %d and prints\n%s\nThe page says\n%s\nLogs:\n%s", c.at, c.line, code, have, c.want, logs)
		}
		if !until {
			report()
		}
		select {
		case <-deadline:
			report()
		case <-time.After(100 * time.Millisecond):
		}
	}
}
