package main

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/cairnsync/cairn/sdk"
)

// Config is the config block of a file target.
type Config struct {
	Path   string `cairn:"path,required,folder" doc:"the directory that holds the objects, absolute; in HCL, abspath(\"dir\") makes it so"`
	Create bool   `cairn:"create" default:"false" doc:"have the first put make the directory when only its last element is missing; until then the store is empty. Not for a disk that may be unmounted"`
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
