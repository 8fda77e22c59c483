package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cairnsync/cairn/sdk"
)

// Config is the config block of a file target.
type Config struct {
	Path   string `cairn:"path,required,folder" doc:"the directory that holds the objects, absolute; in HCL, abspath(\"dir\") makes it so"`
	Create bool   `cairn:"create" default:"false" doc:"make the directory at start when only its last element is missing; not for a directory on a disk that may be unmounted"`
}

// validate demands an absolute path: a plugin's working directory is the host's choice, so a relative one would name another
// directory on another day.
func validate(cfg Config) error {
	var fault error
	switch {
	case cfg.Path == "":
		fault = errors.New("it is empty")
	case !filepath.IsAbs(cfg.Path):
		fault = fmt.Errorf("%q is relative", cfg.Path)
	case filepath.Clean(cfg.Path) == "/":
		fault = errors.New("the root of the file system cannot be a target")
	default:
		return nil
	}
	return &sdk.Error{
		Code: sdk.InvalidConfig, Op: "validate", Attribute: "path", Err: fault,
		Hint: `give an absolute path; path = abspath("backups") is one beside the configuration file`,
	}
}

// createRoot makes the last element of path, durably. Its parent must exist. A directory that was there is synced too: whoever made it may
// have been killed before that.
func createRoot(path string, sync func(*os.File) error) error {
	if err := os.Mkdir(path, dirMode); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	parent, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer parent.Close()
	return sync(parent)
}
