package host

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cairnsync/cairn/core/pluginhost"
	"github.com/cairnsync/cairn/sdk/client"
)

// One plugin that could not be asked what its targets take kept the host from starting, with all of its pipelines. It works as soon as it is mended.
func TestAPluginThatCannotBeAskedAtTheStartKeepsNothingButItsOwnTargetFromWorking(t *testing.T) {
	for name, script := range map[string]string{
		"it is missing":   "",
		"it exits":        "#!/bin/sh\necho cannot >&2\nexit 3\n",
		"it is silent":    "#!/bin/sh\nexec /bin/sleep 1000\n",
		"it is no plugin": "#!/bin/sh\necho hello\nexec /bin/sleep 1000\n",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			path, place := w.path("cairn-plugin-late"), w.path("late")
			must(t, os.Mkdir(place, 0o755))
			if script != "" {
				must(t, os.WriteFile(path, []byte(script), 0o700))
			}
			file := w.path("cairn.hcl")
			must(t, os.WriteFile(file, []byte(w.hcl(conf{
				more: fmt.Sprintf("plugin \"late\" {\n  path = %q\n}\ntarget \"late\" {\n  plugin = \"late\"\n  config {\n    path = %q\n  }\n}\n", path, place),
				sync: "    sync \"t\" {\n      push_interval = \"100ms\"\n    }\n    sync \"late\" {\n      push_interval = \"100ms\"\n    }\n",
			})), 0o600))
			quick := pluginhost.Timeouts{Start: 2 * time.Second}
			if _, found := Load(t.Context(), file, LoadOptions{Now: time.Now, timeouts: quick}); !found.HasErrors() {
				t.Error("a check lets it pass")
			}
			cfg, found := Load(t.Context(), file, LoadOptions{Now: time.Now, Start: true, timeouts: quick})
			if found.HasErrors() {
				t.Fatal(found)
			}
			contains(t, found.Error(), `plugin "late" cannot be asked what it takes`, "everything else does")

			h := w.run(cfg).up()
			h.insert(0, 5)
			id := h.checkpoint()
			target := func(name string) client.TargetView {
				for _, v := range h.view("p").Targets {
					if v.Target == name {
						return v
					}
				}
				t.Fatalf("no target %q", name)
				panic("unreachable")
			}
			h.until("the other target has it", func() bool { at := target("t"); return at.Committed != nil && at.Committed.UUID.String() == id })
			if at := target("late"); at.Committed != nil || at.Plugin == nil || at.Plugin.State == "ready" {
				t.Errorf("the late one: %+v", at)
			}

			must(t, os.RemoveAll(path))
			must(t, os.Link(filepath.Join(plugins.dir, "cairn-plugin-file"), path))
			h.until("the late one has it, once it is mended", func() bool {
				_, _ = h.SyncCheckpoint(t.Context(), "p", false)
				at := target("late")
				return at.Committed != nil && at.Committed.UUID.String() == id
			})
		})
	}
}
