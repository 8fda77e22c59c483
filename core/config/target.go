package config

import (
	"encoding/hex"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/hashicorp/hcl/v2"
)

// plugins reads the plugin blocks. A plugin that no target names is checked as well, but never runs.
func (l *loader) plugins(file section, host Host) map[string]Plugin {
	all, names := map[string]Plugin{}, map[string]hcl.Range{}
	for _, b := range file.all("plugin") {
		s := file.load(b)
		if !s.name(names) {
			continue
		}
		p := Plugin{Name: s.label, Path: s.path("path", l.dir), Checksum: s.checksum(), Env: s.environment(), Dev: s.boolean("dev")}
		if p.Path == "" {
			p.Path = defaultPath(host, p.Name)
		}
		all[p.Name] = p
	}
	return all
}

func defaultPath(host Host, plugin string) string {
	return filepath.Join(host.PluginDir, "cairn-plugin-"+plugin)
}

func (s section) checksum() string {
	written := s.text("checksum")
	if written == "" && !s.has("checksum") {
		return ""
	}
	sum, prefixed := strings.CutPrefix(written, "sha256:")
	if raw, err := hex.DecodeString(sum); !prefixed || err != nil || len(raw) != 32 {
		s.fault(s.where("checksum"), fmt.Sprintf("checksum cannot be %q", written), "Write sha256: and 64 hex digits, as `cairn plugin hash` prints them.")
		return ""
	}
	return strings.ToLower(written)
}

// environment is a map whose values may be secrets: no fault of it shows the source.
func (s section) environment() map[string]string {
	seen := len(s.found)
	env := s.textMap("env")
	s.hideSource(seen)
	return env
}

func (l *loader) targets(file section, host Host, plugins map[string]Plugin) []Target {
	var all []Target
	names, bodies := map[string]hcl.Range{}, &schemas{ask: l.opts.Schema}
	for _, b := range file.all("target") {
		s := file.load(b)
		s.name(names)
		plugin := s.text("plugin")
		if s.has("plugin") && !validName(plugin) {
			s.fault(s.where("plugin"), fmt.Sprintf("no plugin can be named %q", plugin), "Name the plugin as in cairn-plugin-NAME; where its file lies is said in a plugin block.")
			all = append(all, Target{Name: s.label}) // so that a sync block finds it, and only the true fault is told
			continue
		}
		p, ok := plugins[plugin]
		if !ok {
			p = Plugin{Name: plugin, Path: defaultPath(host, plugin)}
		}
		t := Target{Name: s.label, Plugin: p}
		t.Body = s.body(bodies, p)
		all = append(all, t)
	}
	return all
}
