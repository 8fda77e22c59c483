package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cairnsync/cairn/sdk"
)

func TestAPluginThatMustNotRunIsNotEvenAskedForItsSchema(t *testing.T) {
	sum := `checksum = "sha256:` + strings.Repeat("0", 64) + `"`
	for name, row := range map[string]struct {
		block string
		asked bool
	}{
		"with its checksum": {sum, true},
		"without":           {"", false},
		"dev":               {"dev = true\n" + sum, false},
	} {
		file := filepath.Join(t.TempDir(), "cairn.hcl")
		text := "host { require_checksums = true }\nplugin \"store\" {\n" + row.block + "\n}\n" + target + strings.Replace(target, `"t"`, `"u"`, 1)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		asked := false
		opts := options(t)
		schema := opts.Schema
		opts.Schema = func(h Host, p Plugin) (sdk.Schema, error) {
			asked = true
			return schema(h, p)
		}
		cfg, _ := Load(file, opts)
		if asked != row.asked {
			t.Errorf("%s: asked %v", name, asked)
		}
		for _, one := range cfg.Targets {
			if one.Sound() != row.asked {
				t.Errorf("%s: target %s is sound: %v", name, one.Name, one.Sound())
			}
		}
	}
}

func TestTheSecretsOfABodyAreThoseOfItsSchema(t *testing.T) {
	cfg, found := load(t, strings.Replace(target, "path = ", "key = env(\"KEY\")\npath = ", 1)+pipeline("p", `storage "file" {}`))
	if found.HasErrors() {
		t.Fatal(found)
	}
	if got := cfg.Targets[0].Body.Secrets(); !slices.Equal(got, []string{"s3cret"}) {
		t.Errorf("got %q", got)
	}
}

// CASES A56
func TestAMemoryLimitIsBytes(t *testing.T) {
	cfg, found := load(t, "plugin \"store\" {\nmemory_limit = \"256MiB\"\n}\n"+target+pipeline("p", `storage "file" {}`))
	if found.HasErrors() || cfg.Targets[0].Plugin.MemoryLimit != 256<<20 {
		t.Errorf("%v", found)
	}
}
