package config

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/cairnsync/cairn/sdk"
)

const referenceFile = "../../docs/configuration.md"

const referenceHead = `# Configuration

One HCL file configures a host. ` + "`cairn config check --config FILE`" + ` reports everything that is wrong with it in one run, each fault with
file, line and remedy; ` + "`cairn run`" + ` refuses a file with an error in it. [examples/quickstart.hcl](../examples/quickstart.hcl) is a complete one.

Three functions can be used wherever a string can: ` + "`env(\"NAME\")`" + ` is an environment variable of the host (an unset one is an error),
` + "`file(\"schema.sql\")`" + ` is the text of a file without its last newline, ` + "`abspath(\"dir\")`" + ` is an absolute path, for targets that want one.
Relative paths stand under the folder of the configuration file. Durations are numbers with a unit (` + "`\"500ms\"`, `\"10s\"`, `\"24h\"`" + `) of
at most ten years. To switch something off, leave it out: zero is refused.

<!-- The rest is generated from core/config: go test ./core/config -update -->
`

// The reference is generated from the tables that the loader itself runs on, so it cannot differ from what is accepted.
func TestTheReferenceIsGeneratedFromTheSpec(t *testing.T) {
	var text strings.Builder
	text.WriteString(referenceHead)
	for _, b := range root().Blocks {
		writeBlock(&text, nil, b)
	}
	if *update {
		if err := os.WriteFile(referenceFile, []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(referenceFile)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != text.String() {
		t.Error("docs/configuration.md is not what core/config accepts; run: go test ./core/config -update")
	}
}

func writeBlock(w *strings.Builder, parents []string, b block) {
	title := b.Type
	if b.Label != "" {
		title += fmt.Sprintf(" %q", strings.ToUpper(b.Label))
	}
	chain := append(append([]string{}, parents...), title)
	fmt.Fprintf(w, "\n## %s\n\n%s%s\n", strings.Join(chain, " › "), b.Doc, times(b))
	if len(b.Attributes) > 0 {
		fmt.Fprint(w, "\n| attribute | type | default | range | meaning |\n|---|---|---|---|---|\n")
	}
	for _, a := range b.Attributes {
		fmt.Fprintf(w, "| `%s` | %s | %s | %s | %s |\n", a.Name, a.Kind, written(a), bounds(a), strings.ReplaceAll(a.Doc, "|", `\|`))
	}
	for _, inner := range b.Blocks {
		writeBlock(w, chain, inner)
	}
}

func times(b block) string {
	switch {
	case b.Required && b.Once:
		return " Exactly one."
	case b.Required:
		return " One or more."
	case b.Once:
		return " At most one."
	}
	return ""
}

func written(a attribute) string {
	switch {
	case a.Required:
		return "required"
	case a.Default == "":
		return ""
	case a.Kind == integer || a.Kind == boolean:
		return "`" + a.Default + "`"
	}
	return "`\"" + a.Default + "\"`"
}

func bounds(a attribute) string {
	switch {
	case a.Enum != nil:
		return strings.Join(a.Enum, ", ")
	case a.Kind == integer:
		return fmt.Sprintf("%d – %d", a.Min, a.Max)
	case a.Kind == size:
		return fmt.Sprintf("%s – %s", sdk.Size(a.Min), sdk.Size(a.Max))
	case a.Kind == duration:
		return fmt.Sprintf("%s – 10 years", a.Least)
	}
	return ""
}

// A row of the spec that no getter reads would be documentation for something that does nothing.
func TestEveryAttributeOfTheSpecIsRead(t *testing.T) {
	sources, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var code strings.Builder
	for _, s := range sources {
		if name := s.Name(); strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") && name != "spec.go" {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			code.Write(text)
		}
	}
	var check func(b block)
	check = func(b block) {
		for _, a := range b.Attributes {
			if !strings.Contains(code.String(), fmt.Sprintf("(%q", a.Name)) {
				t.Errorf("nothing reads %s.%s", b.Type, a.Name)
			}
		}
		for _, inner := range b.Blocks {
			check(inner)
		}
	}
	check(root())
}
