package core_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestThePageOfTargetsNamesEveryAttributeOfEveryPlugin holds docs/targets.md to the configurations of the plugins that come with Cairn, each
// in a section of its own.
func TestThePageOfTargetsNamesEveryAttributeOfEveryPlugin(t *testing.T) {
	page, err := os.ReadFile("../docs/targets.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]string{}
	for section := range strings.SplitSeq(string(page), "\n## ") {
		name, text, _ := strings.Cut(section, ":")
		sections[name] = text
	}
	configs, err := filepath.Glob("../plugins/*/config.go")
	if err != nil || len(configs) == 0 {
		t.Fatal("no plugin is found", err)
	}
	tag := regexp.MustCompile("`cairn:\"([a-z0-9_]+)")
	for _, file := range configs {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(filepath.Dir(file))
		attributes := tag.FindAllStringSubmatch(string(source), -1)
		if len(attributes) == 0 {
			t.Errorf("%s has no attribute", file)
		}
		for _, attribute := range attributes {
			if !strings.Contains(sections[name], "`"+attribute[1]+"`") {
				t.Errorf("the section %q of docs/targets.md does not name %s", name, attribute[1])
			}
		}
	}
}
