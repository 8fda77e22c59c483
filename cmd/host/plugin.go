package main

import (
	"fmt"
	"io"
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

// pluginFile takes the path of a plugin, or the name of one in the plugin folder.
func pluginFile(cmd *cobra.Command, arg string) string {
	dir, err := cmd.Flags().GetString("dir")
	if _, missing := os.Stat(arg); err != nil || missing == nil || strings.ContainsRune(arg, filepath.Separator) {
		return arg
	}
	return filepath.Join(dir, "cairn-plugin-"+arg)
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
			about, err := host.DescribePlugin(cmd.Context(), pluginFile(cmd, args[0]), time.Now) //nolint:forbidigo // main hands the clock down
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
			file := pluginFile(cmd, args[0])
			sum, err := host.HashPlugin(file)
			if err != nil {
				return err
			}
			return p.show(map[string]string{"file": file, "checksum": sum}, func(w io.Writer) { fmt.Fprintln(w, sum) })
		},
	}
}
