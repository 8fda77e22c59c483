package config

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// evalContext holds the functions of the language. abspath is for paths in a target's body, which only its plugin can tell from other
// text, and which a plugin cannot resolve: it runs in a folder of its own.
func evalContext(dir string, getenv func(string) (string, bool)) *hcl.EvalContext {
	return &hcl.EvalContext{Functions: map[string]function.Function{
		"env":     stringFunction("name", func(name string) (string, error) { return environment(name, getenv) }),
		"file":    stringFunction("path", func(path string) (string, error) { return included(dir, path) }),
		"abspath": stringFunction("path", func(path string) (string, error) { return under(dir, path), nil }),
	}}
}

// asWritten is the language with an abspath that leaves paths as they are.
func asWritten(eval *hcl.EvalContext) *hcl.EvalContext {
	functions := maps.Clone(eval.Functions)
	functions["abspath"] = stringFunction("path", func(path string) (string, error) { return path, nil })
	return &hcl.EvalContext{Functions: functions, Variables: eval.Variables}
}

func stringFunction(param string, call func(string) (string, error)) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: param, Type: cty.String}},
		Type:   function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			got, err := call(args[0].AsString())
			if err != nil {
				return cty.NilVal, function.NewArgError(0, err)
			}
			return cty.StringVal(got), nil
		},
	})
}

// environment refuses an unset variable: an empty password that nobody meant is worse than a host that does not start.
func environment(name string, getenv func(string) (string, bool)) (string, error) {
	if getenv != nil {
		if value, ok := getenv(name); ok {
			return value, nil
		}
	}
	return "", fmt.Errorf("environment variable %s is not set; set it, if need be to an empty value", name)
}

// included reads a regular file beside the configuration: a pipe would be waited for. Editors end files with a newline that nobody means to be
// part of the text, so one is dropped.
func included(dir, path string) (string, error) {
	path = under(dir, path)
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is not a regular file", path)
	}
	text, err := readText(path)
	if err != nil {
		return "", err
	}
	return strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r"), nil
}

func under(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}
