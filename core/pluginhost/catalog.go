package pluginhost

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

const (
	filePrefix     = "cairn-plugin-"
	checksumPrefix = "sha256:"
)

// Catalog finds the file of a plugin. It looks at the one file that is asked for: other files of the directory are never opened, let
// alone run, so a foreign or broken one harms nobody.
type Catalog struct {
	Dir   string            // plugin_dir
	Paths map[string]string // plugin name → explicit path, which wins over Dir
}

// Path answers the absolute path of the plugin's file: the explicit one, else Dir/cairn-plugin-NAME. It does not ask whether the file
// exists or may run; starting it does, and says what is wrong.
func (c Catalog) Path(name string) (string, error) {
	path, explicit := c.Paths[name]
	if !explicit {
		if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\\\x00") {
			return "", fmt.Errorf("plugin %q: a plugin's name is one part of a file name; set path in a plugin block to run another file", name)
		}
		path = filepath.Join(c.Dir, filePrefix+name)
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("plugin %q: %w", name, err)
	}
	return abs, nil
}

// Names lists the plugins that lie in Dir under their usual names, for people to read. It starts nothing; a directory that does not
// exist holds none.
func (c Catalog) Names() ([]string, error) {
	entries, err := os.ReadDir(c.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("plugin directory: %w", err)
	}
	var names []string
	for _, entry := range entries {
		if name, ok := strings.CutPrefix(entry.Name(), filePrefix); ok && name != "" && !entry.IsDir() {
			names = append(names, name)
		}
	}
	return names, nil
}

// Hash answers the checksum of a plugin file as the configuration wants it: "sha256:" and 64 hex digits. A file that is too large for a
// plugin is not read.
func Hash(ctx context.Context, path string) (string, error) {
	f, err := openRegular(path)
	if err != nil {
		return "", fmt.Errorf("hash plugin: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && info.Size() > maxImage {
		err = fmt.Errorf("it has %d bytes; a plugin of more than %d is not run: name the plugin's binary", info.Size(), maxImage)
	}
	sum := sha256.New()
	if err == nil {
		_, err = io.Copy(sum, contextReader{ctx, f})
	}
	if err != nil {
		return "", fmt.Errorf("hash plugin %s: %w", path, err)
	}
	return formatChecksum([32]byte(sum.Sum(nil))), nil
}

func formatChecksum(sum [32]byte) string { return checksumPrefix + hex.EncodeToString(sum[:]) }

func parseChecksum(text string) (sum [32]byte, err error) {
	digits, ok := strings.CutPrefix(text, checksumPrefix)
	if n, err := hex.Decode(sum[:], []byte(digits[:min(len(digits), 2*len(sum))])); !ok || err != nil || n != len(sum) || len(digits) != 2*len(sum) {
		return sum, fmt.Errorf("checksum %q is not \"sha256:\" and 64 hex digits; `cairn plugin hash FILE` prints it", text)
	}
	return sum, nil
}

// openRegular opens a regular file for reading and never waits for the other end of a pipe or a device.
func openRegular(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: errNotRegular}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
