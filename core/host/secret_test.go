package host

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestADataFolderTooDeepForSocketsIsAFaultOfTheConfiguration(t *testing.T) {
	w := newWorld(t)
	deep := filepath.Join("data", strings.Repeat("d", 100))
	file := w.path("cairn.hcl")
	must(t, os.WriteFile(file, []byte(w.hcl(conf{data: deep})), 0o600))
	_, found := Load(context.Background(), file, LoadOptions{Now: time.Now})
	text := found.Error()
	for _, part := range []string{"cairn.hcl:3:", "data_dir cannot be", "bytes, at most"} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in:\n%s", part, text)
		}
	}
}

func TestUnderRequireChecksumsTheLineToAddIsGivenAndWorks(t *testing.T) {
	w := newWorld(t)
	file := w.path("cairn.hcl")
	check := func(block string) (text string, bad bool) {
		hcl := strings.Replace(w.hcl(conf{more: block}), "host {", "host {\n  require_checksums = true", 1)
		must(t, os.WriteFile(file, []byte(hcl), 0o600))
		_, found := Load(context.Background(), file, LoadOptions{Now: time.Now})
		return found.Error(), found.HasErrors()
	}
	text, bad := check("")
	_, line, ok := strings.Cut(text, `put this line into the block plugin "file": `)
	if !bad || !ok {
		t.Fatalf("no line to add:\n%s", text)
	}
	line, _, _ = strings.Cut(line, "\n")
	if text, bad := check("plugin \"file\" {\n" + line + "\n}\n"); bad {
		t.Errorf("with the line:\n%s", text)
	}
	wrong := `checksum = "sha256:` + strings.Repeat("0", 64) + `"`
	if text, bad := check("plugin \"file\" {\n" + wrong + "\n}\n"); !bad || !strings.Contains(text, strings.TrimPrefix(strings.Trim(line, `"`), `checksum = "`)) {
		t.Errorf("with a wrong one:\n%s", text)
	}
}
