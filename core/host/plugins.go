package host

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/cairnsync/cairn/core/pluginhost"
	"github.com/cairnsync/cairn/sdk"
)

// PluginFile is a plugin in a folder.
type PluginFile struct {
	Name string `json:"name"`
	Path string `json:"path"`
}

// ListPlugins lists the plugins in a folder. It starts none of them.
func ListPlugins(dir string) ([]PluginFile, error) {
	catalog := pluginhost.Catalog{Dir: dir}
	names, err := catalog.Names()
	if err != nil {
		return nil, err
	}
	files := []PluginFile{}
	for _, name := range names {
		path, err := catalog.Path(name)
		if err != nil {
			return nil, err
		}
		files = append(files, PluginFile{Name: name, Path: path})
	}
	return files, nil
}

// HashPlugin is the checksum of a plugin file, as a configuration wants it.
func HashPlugin(ctx context.Context, file string) (string, error) { return pluginhost.Hash(ctx, file) }

// DescribePlugin starts a plugin, asks what it is, and ends it. A file that others may write is described all the same: it is run with
// nothing of value.
func DescribePlugin(ctx context.Context, file string, now func() time.Time) (sdk.Description, error) {
	path, err := filepath.Abs(file)
	if err != nil {
		return sdk.Description{}, fmt.Errorf("plugin %s: %w", file, err)
	}
	var about sdk.Description
	err = withPlugins("", now, func(opts pluginhost.Options) (err error) {
		about, err = pluginhost.Describe(ctx, pluginhost.Spec{Plugin: filepath.Base(path), Path: path, Dev: true}, opts)
		return err
	})
	return about, err
}
