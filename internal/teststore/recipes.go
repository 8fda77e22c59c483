package teststore

import (
	"context"
	"embed"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
)

// locks are the npm programs' package.json and package-lock.json: exact versions with their digests, and no registry's address, so that
// npm takes them from the one it is configured for.
//
//go:embed npm/*/package.json npm/*/package-lock.json
var locks embed.FS

// goProgram is a program that `go install` compiles, outside this module and whatever GOFLAGS says of it.
func goProgram(name, version, pkg string) recipe {
	return recipe{
		name: name, version: version, takes: "up to six minutes on two cores",
		into: func(ctx context.Context, dir string) *exec.Cmd {
			cmd := exec.CommandContext(ctx, "go", "install", pkg+"@"+version)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "GOBIN="+dir, "GOFLAGS=", "GOWORK=off", "CGO_ENABLED=0")
			return cmd
		},
	}
}

// nodeProgram is an npm package that `npm ci` unpacks; none of its install scripts run.
func nodeProgram(name, version string) recipe {
	return recipe{
		name: name, version: version, takes: "about a minute",
		prepare: func(dir string) error {
			files, err := fs.Sub(locks, "npm/"+name)
			if err != nil {
				return err
			}
			return os.CopyFS(dir, files)
		},
		into: func(ctx context.Context, dir string) *exec.Cmd {
			cmd := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--omit=dev", "--prefix", dir)
			cmd.Dir = filepath.Clean(dir)
			return cmd
		},
	}
}
