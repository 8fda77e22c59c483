package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/mod/module"
)

func (p *program) pluginNewCommand() *cobra.Command {
	var dir, modulePath, sdk string
	cmd := &cobra.Command{
		Use: "new NAME", Args: cobra.ExactArgs(1),
		Short: "Write a plugin to begin with: a module of six files that compiles and passes the exam",
		Long: `Write a Go module with a small plugin that works: it keeps objects as files of one directory. Its tests are the exam. Put the calls of
your own store in place of its four methods, and they tell when you are done.

A released cairn names its own version as the SDK. One that was built from a source tree has no version that could be fetched; it names
the tree it lies in, or the one that --sdk names, by a replace line in go.mod.`,
		RunE: func(_ *cobra.Command, args []string) error {
			s, err := newScaffold(args[0], dir, modulePath, sdk)
			if err != nil {
				return err
			}
			if err := s.write(); err != nil {
				return err
			}
			return p.show(s, s.nextSteps)
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "folder to make, or an empty one (default ./cairn-plugin-NAME)")
	cmd.Flags().StringVar(&modulePath, "module", "", "path of the Go module (default example.com/cairn-plugin-NAME)")
	cmd.Flags().StringVar(&sdk, "sdk", "", "source tree of Cairn to build against")
	return cmd
}

// scaffold is the module that plugin new writes.
type scaffold struct {
	Name    string   `json:"name"`
	Dir     string   `json:"dir"`
	Module  string   `json:"module"`
	SDK     string   `json:"sdk,omitempty"` // source tree of Cairn; "" = the published version
	Version string   `json:"version"`       // of the module github.com/cairnsync/cairn
	Tidy    bool     `json:"tidy"`          // go.mod and go.sum need `go mod tidy` before the first build
	Files   []string `json:"files"`
}

// maxPluginName keeps cairn-plugin-NAME short enough for every file system and log line.
const maxPluginName = 40

func newScaffold(name, dir, modulePath, sdkTree string) (*scaffold, error) {
	if !regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`).MatchString(name) || len(name) > maxPluginName {
		return nil, usageError{fmt.Errorf("%q cannot be a plugin's name: want 1 to %d of a-z, 0-9 and single dashes, beginning with a letter", name, maxPluginName)}
	}
	s := &scaffold{Name: name, Dir: dir, Module: modulePath}
	if s.Dir == "" {
		s.Dir = "cairn-plugin-" + name
	}
	if s.Module == "" {
		s.Module = "example.com/cairn-plugin-" + name
	}
	if err := module.CheckImportPath(s.Module); err != nil {
		return nil, usageError{fmt.Errorf("--module: %w", err)}
	}
	return s, s.chooseSDK(sdkTree)
}

// chooseSDK settles what the module builds against.
func (s *scaffold) chooseSDK(tree string) (err error) {
	if tree == "" {
		if s.Version = releasedVersion(version); s.Version != "" {
			s.Tidy = true // the sums of Cairn's own module are not known to its binary
			return nil
		}
		if tree = treeOfThisBinary(); tree == "" {
			return errors.New("this cairn is a development build: its SDK is published nowhere, and it does not lie in a source tree; name the tree with --sdk DIR")
		}
	}
	if s.SDK, err = filepath.Abs(tree); err != nil {
		return fmt.Errorf("--sdk: %w", err)
	}
	s.Version = "v0.0.0"
	if !isSourceTree(s.SDK) {
		return usageError{fmt.Errorf("--sdk %s is not a source tree of Cairn: it has no go.mod that says \"module %s\"", tree, cairnModule)}
	}
	s.Tidy, err = s.versionsDiffer()
	return err
}

// releasedVersion is the version of this cairn as the module proxy knows it; "" for a development build. own is what the build has set.
func releasedVersion(own string) string {
	if !strings.Contains(own, "-") {
		return "v" + own
	}
	// go install github.com/cairnsync/cairn/cmd/host@VERSION sets nothing, but a module that was downloaded has a sum.
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Path == cairnModule && info.Main.Sum != "" {
		return info.Main.Version
	}
	return ""
}

// treeOfThisBinary is the source tree that holds this binary, usually in its folder bin; "" when none does.
func treeOfThisBinary() string {
	file, err := os.Executable()
	if err == nil {
		file, err = filepath.EvalSymlinks(file)
	}
	if err != nil {
		return ""
	}
	for dir := filepath.Dir(file); ; dir = filepath.Dir(dir) {
		if isSourceTree(dir) {
			return dir
		}
		if dir == filepath.Dir(dir) {
			return ""
		}
	}
}

// nextSteps is what a person does now.
func (s *scaffold) nextSteps(w io.Writer) {
	binary := "cairn-plugin-" + s.Name
	fmt.Fprintf(w, "%s holds the plugin %q, module %s: %s\n", s.Dir, s.Name, s.Module, strings.Join(s.Files, " "))
	if s.SDK != "" {
		fmt.Fprintf(w, "It builds against the source tree %s.\n", s.SDK)
	}
	fmt.Fprintf(w, "It works: objects are files of one directory. Make it yours in main.go (configuration) and target.go (four methods).\n\n")
	fmt.Fprintf(w, "  cd %s\n", s.Dir)
	if s.Tidy {
		fmt.Fprintf(w, "  go mod tidy\n")
	}
	// Without cgo the plugin needs no library of the machine it runs on; for tests and build alike, or Go compiles everything twice.
	fmt.Fprintf(w, "  export CGO_ENABLED=0\n")
	fmt.Fprintf(w, "  go test ./...\n")
	fmt.Fprintf(w, "  go build -o %s .\n", binary)
	fmt.Fprintf(w, "  cairn plugin check ./%s --config cairn.hcl\n", binary)
}
