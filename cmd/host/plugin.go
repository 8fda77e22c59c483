package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cairnsync/cairn/core/host"
)

func (p *program) pluginCommand() *cobra.Command {
	return group("plugin", "Look at and examine plugins", p.pluginListCommand(), p.pluginNewCommand(), pluginDirFlag(p.pluginInfoCommand()), pluginDirFlag(p.pluginHashCommand()), pluginDirFlag(p.pluginCheckCommand()))
}

// pluginFile takes the path of a plugin, or the name of one in the plugin folder. A folder of that name is no plugin.
func pluginFile(cmd *cobra.Command, arg string) (string, error) {
	if info, err := os.Stat(arg); err == nil && !info.IsDir() {
		return arg, nil
	}
	if strings.ContainsRune(arg, filepath.Separator) {
		return arg, missingPlugin(arg, arg)
	}
	dir, err := cmd.Flags().GetString("dir")
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "cairn-plugin-"+arg)
	return file, missingPlugin(file, fmt.Sprintf("%s in this folder, nor %s", arg, file))
}

// missingPlugin is an error when a file is proven not to be there.
func missingPlugin(file, what string) error {
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		return notFoundError{fmt.Errorf("there is no file %s; give the path of one, or its name and its folder with --dir: `cairn plugin list --dir DIR` lists what is there, "+
			"and `make build` in Cairn's source tree makes all four below bin", what)}
	}
	return nil
}

func pluginDirFlag(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().String("dir", "bin", "folder to look in for a plugin given by its name")
	return cmd
}

func (p *program) pluginListCommand() *cobra.Command {
	dir := "bin"
	cmd := &cobra.Command{
		Use: "list", Short: "List the plugins in a folder; starts none of them", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			plugins, err := host.ListPlugins(dir)
			if err != nil {
				return err
			}
			return p.show(plugins, func(w io.Writer) {
				if len(plugins) == 0 {
					fmt.Fprintf(w, "no plugins in %s\n", dir)
					return
				}
				rows := [][]string{}
				for _, one := range plugins {
					rows = append(rows, []string{one.Name, one.Path})
				}
				table(w, []string{"PLUGIN", "FILE"}, rows)
			})
		},
	}
	cmd.Flags().StringVar(&dir, "dir", dir, "plugin folder")
	return cmd
}

func (p *program) pluginInfoCommand() *cobra.Command {
	return &cobra.Command{
		Use: "info FILE|NAME", Short: "Start a plugin, ask what it is and which attributes it takes, and end it", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			file, err := pluginFile(cmd, args[0])
			if err != nil {
				return err
			}
			about, err := host.DescribePlugin(cmd.Context(), file, time.Now) //nolint:forbidigo // main hands the clock down
			if err != nil {
				return err
			}
			return p.show(about, func(w io.Writer) {
				fmt.Fprintf(w, "%s %s (SDK %s): %s\n", about.Name, about.Version, about.SDK, about.Doc)
				rows := [][]string{}
				for _, a := range about.Schema.Attributes {
					need := a.Default
					if a.Required {
						need = "required"
					}
					rows = append(rows, []string{a.Name, string(a.Type), need, a.Doc})
				}
				table(w, []string{"ATTRIBUTE", "TYPE", "DEFAULT", "MEANING"}, rows)
			})
		},
	}
}

func (p *program) pluginHashCommand() *cobra.Command {
	return &cobra.Command{
		Use: "hash FILE|NAME", Short: "Print the checksum of a plugin as the configuration wants it", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			file, err := pluginFile(cmd, args[0])
			if err != nil {
				return err
			}
			sum, err := host.HashPlugin(cmd.Context(), file)
			if err != nil {
				return err
			}
			return p.show(map[string]string{"file": file, "checksum": sum}, func(w io.Writer) { fmt.Fprintln(w, sum) })
		},
	}
}
