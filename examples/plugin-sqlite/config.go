package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/cairnsync/cairn/sdk"
)

// Config is the config block of a target.
type Config struct {
	Path        string        `cairn:"path,required" doc:"the database file, absolute, on a local disk; in HCL, abspath(\"objects.db\") makes it so"`
	Create      bool          `cairn:"create" default:"false" doc:"have the first put make the file when it is missing; until then the store is empty. Not on a disk that may be unmounted: its absence would look like an empty store"`
	BusyTimeout time.Duration `cairn:"busy_timeout" default:"10s" doc:"how long to wait for another process that is writing to the database"`
}

// The range of busy_timeout. Above it a call would outlast the host's patience.
const (
	minBusy = 100 * time.Millisecond
	maxBusy = 30 * time.Second
)

// validate looks at text only; whether the file is there is each call's business.
func validate(cfg Config) error {
	return errors.Join(pathFault(cfg.Path), busyFault(cfg.BusyTimeout))
}

func pathFault(path string) error {
	if filepath.IsAbs(path) && !strings.HasSuffix(path, "/") && !strings.Contains(path, "\x00") {
		return nil
	}
	return &sdk.Error{
		Code: sdk.InvalidConfig, Attribute: "path", Err: fmt.Errorf("%q is not the absolute path of a file", path),
		Hint: `path = abspath("objects.db") is a file beside the configuration`,
	}
}

func busyFault(wait time.Duration) error {
	if wait >= minBusy && wait <= maxBusy {
		return nil
	}
	return &sdk.Error{Code: sdk.InvalidConfig, Attribute: "busy_timeout", Err: fmt.Errorf("%v is outside %v to %v", wait, minBusy, maxBusy)}
}
