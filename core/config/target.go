package config

import (
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

// plugins reads the plugin blocks. A plugin that no target names is checked as well, but never runs.
func (l *loader) plugins(file section, host Host) map[string]Plugin {
	all, names := map[string]Plugin{}, map[string]hcl.Range{}
	for _, b := range file.all("plugin") {
		if !l.opts.whole() && !l.serves(file, b.Labels[0]) {
			continue
		}
		s := file.load(b)
		named := s.name(names)
		p := Plugin{Name: s.label, Path: s.path("path", l.dir), Checksum: s.checksum(), Env: s.environment(), Dev: s.boolean("dev"), MemoryLimit: s.size("memory_limit")}
		s.refuseDev(host, p)
		if p.Path == "" {
			p.Path = defaultPath(host, p.Name)
		}
		if named {
			all[p.Name] = p
		}
	}
	return all
}

// serves tells whether a wanted target names the plugin.
func (l *loader) serves(file section, plugin string) bool {
	wanted := l.wanted(file)
	return slices.ContainsFunc(file.all("target"), func(target *hcl.Block) bool {
		name, ok := l.attribute(target, "plugin")
		return ok && name == plugin && wanted(target.Labels[0])
	})
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

// wanted tells which targets are to be read: all, the one that is asked for, or with Only those that the pipeline's checkpoints go to.
func (l *loader) wanted(file section) func(target string) bool {
	switch {
	case l.opts.OnlyTarget != "":
		return func(target string) bool { return target == l.opts.OnlyTarget }
	case l.opts.Only == "":
		return func(string) bool { return true }
	}
	var names []string
	for _, pipeline := range file.all("pipeline") {
		if pipeline.Labels[0] == l.opts.Only {
			names = append(names, l.destinations(pipeline)...)
		}
	}
	return func(target string) bool { return slices.Contains(names, target) }
}

// reads tells whether a pipeline's block is to be read: all are, the one that is asked for, or with OnlyTarget those whose checkpoints go to it.
func (l *loader) reads(pipeline *hcl.Block) bool {
	switch {
	case l.opts.Only != "":
		return pipeline.Labels[0] == l.opts.Only
	case l.opts.OnlyTarget == "":
		return true
	}
	return slices.Contains(l.destinations(pipeline), l.opts.OnlyTarget)
}

// destinations are the targets that a pipeline's checkpoints go to: those of its sync blocks, or the one of object storage.
func (l *loader) destinations(pipeline *hcl.Block) []string {
	var names []string
	for _, storage := range inner(pipeline, "storage", "type") {
		for _, sync := range inner(storage, "sync", "target") {
			names = append(names, sync.Labels[0])
		}
		if name, ok := l.attribute(storage, "target"); ok && BackendType(storage.Labels[0]) == ObjectBackend {
			names = append(names, name)
		}
	}
	return names
}

// attribute is a text in a block's body, which is checked elsewhere; false when it is left out or no text.
func (l *loader) attribute(b *hcl.Block, name string) (string, bool) {
	content, _, _ := b.Body.PartialContent(&hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: name}}}) // as said
	a := content.Attributes[name]
	if a == nil {
		return "", false
	}
	v, _ := a.Expr.Value(l.eval) // as said
	if !v.IsWhollyKnown() || v.IsNull() || v.Type() != cty.String {
		return "", false
	}
	return v.AsString(), true
}

// inner are the blocks of one type in a block's body, which is checked elsewhere.
func inner(b *hcl.Block, blockType, label string) hcl.Blocks {
	content, _, _ := b.Body.PartialContent(&hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{{Type: blockType, LabelNames: []string{label}}}}) // as said
	return content.Blocks
}

func (l *loader) targets(file section, host Host, plugins map[string]Plugin, wanted func(string) bool) []Target {
	var all []Target
	names, bodies := map[string]hcl.Range{}, &schemas{ask: l.opts.Schema, host: host}
	for _, b := range file.all("target") {
		if !wanted(b.Labels[0]) {
			continue
		}
		seen := len(l.found)
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
		t.sound = !l.found[seen:].HasErrors() && checked(host, p)
		t.folders = l.folders(t)
		l.refuseHosts(t, host)
		all = append(all, t)
	}
	return all
}
