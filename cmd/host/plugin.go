package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cairnsync/cairn/core/host"
	"github.com/cairnsync/cairn/sdk/sdktest"
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

func (p *program) pluginCheckCommand() *cobra.Command {
	var target string
	cmd := &cobra.Command{
		Use: "check FILE|NAME --config CONFIG --target NAME", Args: cobra.ExactArgs(1),
		Short: "Examine a plugin: every sentence of the contract, against a target that the configuration names",
		Long: `Start the plugin as a host would, with the config block of a target, and put it through the exam. The exam writes, reads and deletes
objects below a prefix of its own; give it a store that holds nothing of value. Exit code 7 means that it did not pass.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.examine(cmd.Context(), pluginFile(cmd, args[0]), target)
		},
	}
	p.configFlags(cmd)
	cmd.Flags().StringVar(&target, "target", "", "target whose config block the plugin gets (default: the only one)")
	return cmd
}

// verdict is the exam's result.
type verdict struct {
	Plugin string       `json:"plugin"`
	SHA256 string       `json:"sha256"`
	Passed bool         `json:"passed"`
	Cases  []caseResult `json:"cases"`
}

type caseResult struct {
	Name    string `json:"name"`
	Level   string `json:"level"`
	Error   string `json:"error,omitempty"`
	Skipped string `json:"skipped,omitempty"`
}

func (p *program) examine(ctx context.Context, file, target string) error {
	if p.config == "" {
		return usageError{errors.New("name the configuration file: --config FILE")}
	}
	exam, err := host.OpenExam(ctx, file, p.config, target, host.LoadOptions{Getenv: os.LookupEnv, Now: time.Now}) //nolint:forbidigo // main hands the clock down
	if err != nil {
		return offlineError(err)
	}
	defer exam.Close(ctx)
	result := verdict{Plugin: exam.About.Name + " " + exam.About.Version, SHA256: exam.SHA256, Passed: true}
	for _, r := range sdktest.RunCases(ctx, &sdktest.Env{Target: exam.Target, Reopen: exam.Reopen, Spool: exam.Spool}) {
		one := caseResult{Name: r.Case.Name, Level: r.Case.Level.String(), Skipped: r.Skipped}
		if r.Err != nil {
			one.Error, result.Passed = r.Err.Error(), false
		}
		result.Cases = append(result.Cases, one)
	}
	if err := p.show(result, result.write); err != nil {
		return err
	}
	if !result.Passed {
		return examError{fmt.Errorf("%s does not pass", file)}
	}
	return nil
}

func (v verdict) write(w io.Writer) {
	passed, skipped := 0, 0
	for _, c := range v.Cases {
		switch {
		case c.Error != "":
			fmt.Fprintf(w, "FAIL  [%s] %s\n      %s\n", c.Level, c.Name, c.Error)
		case c.Skipped != "":
			skipped++
			fmt.Fprintf(w, "skip  [%s] %s\n      %s\n", c.Level, c.Name, c.Skipped)
		default:
			passed++
			fmt.Fprintf(w, "ok    [%s] %s\n", c.Level, c.Name)
		}
	}
	fmt.Fprintf(w, "%s (%s): %d of %d cases passed, %d skipped\n", v.Plugin, v.SHA256, passed, len(v.Cases), skipped)
}
