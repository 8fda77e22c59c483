package config

import (
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/hashicorp/hcl/v2"
)

func (s section) start() Start {
	return Start{From: s.whichCheckpoint("start_from_checkpoint"), FailIfNoCheckpoint: s.boolean("fail_if_no_checkpoint")}
}

// whichCheckpoint is "", "latest" or a uuid, or at fault.
func (s section) whichCheckpoint(name string) string {
	from := s.text(name)
	if from == "" || from == "latest" {
		return from
	}
	id, err := uuid.Parse(from)
	if err != nil || id.String() != from {
		s.fault(s.where(name), fmt.Sprintf("%s cannot be %q", name, from), `Write "latest", the uuid of a checkpoint (lower case, with dashes), or leave it out.`)
	}
	return from
}

func (s section) sync(p Pipeline, cfg *Config) (Sync, bool) {
	block, ok := s.repository(s.label, s.labels, p, cfg)
	block.PushInterval, block.PullInterval, block.PushOnShutdown = s.duration("push_interval"), s.duration("pull_interval"), s.boolean("push_on_shutdown")
	if s.has("pull_interval") && block.PullInterval == 0 {
		block.PullInterval = 1 // its fault is told: that nothing is followed would be a false one
	}
	if every := p.Checkpoint.Interval; block.PushInterval > 0 && every > block.PushInterval {
		s.warn(s.where("push_interval"), fmt.Sprintf("push_interval is shorter than the checkpoint interval of %s", every), "There is nothing new to push more often than checkpoints are taken.")
	}
	return block, ok
}

// repository is what sync blocks and object storage have in common: the place below a prefix of a target, which is named at the given place. It is
// false when the target or the prefix is at fault.
func (s section) repository(target string, at hcl.Range, p Pipeline, cfg *Config) (Sync, bool) {
	repo, ok := s.belowTarget(p)
	repo.Target = target
	return repo, s.known(target, at, cfg) && ok
}

// belowTarget is a repository but for the target that it lies on.
func (s section) belowTarget(p Pipeline) (Sync, bool) {
	prefix, ok := s.prefix(p)
	return Sync{Prefix: prefix, Fencing: s.text("fencing"), Retention: s.retention()}, ok
}

// retention is nil when there is no such block.
func (s section) retention() *Retention {
	block, ok := s.inner("retention")
	if !ok {
		return nil
	}
	if !block.has("min_count") && !block.has("min_age") {
		s.fault(block.at, "retention without a rule keeps nothing but the newest commit", `Add min_count = 7, min_age = "168h" or both. To keep every commit, remove the block; to keep the newest alone, say min_count = 1.`)
	}
	return &Retention{MinCount: block.integer("min_count"), MinAge: block.duration("min_age"), MaxDelete: block.integer("max_delete")}
}

// refuseRetention reports a retention block beside sync blocks: each target has its own.
func (s section) refuseRetention(b *hcl.Block) {
	content, rest, _ := b.Body.PartialContent(&hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{{Type: "retention"}}}) // likewise
	for _, inner := range content.Blocks {
		s.fault(inner.DefRange, "a retention block belongs in a sync block", `Write it inside sync "TARGET" { … }: each target has a rule of its own. How many local checkpoints stay is keep in the checkpoint block.`)
	}
	b.Body = rest
}

// prefix is false when it is at fault.
func (s section) prefix(p Pipeline) (prefix string, ok bool) {
	if !s.has("prefix") {
		return p.Name, true
	}
	seen := len(s.found)
	prefix = s.text("prefix")
	if len(s.found) == seen && !validPrefix(prefix) {
		s.fault(s.where("prefix"), fmt.Sprintf("prefix cannot be %q", prefix), fmt.Sprintf("Use segments of lower-case letters, digits, . _ and - joined by /, at most %d bytes, without . and .. segments.", maxPrefix))
	}
	return prefix, len(s.found) == seen
}

// known reports a target that does not exist.
func (s section) known(target string, at hcl.Range, cfg *Config) bool {
	if slices.ContainsFunc(cfg.Targets, func(t Target) bool { return t.Name == target }) {
		return true
	}
	s.fault(at, fmt.Sprintf("no target is named %q", target), fmt.Sprintf("Add a target %q { … } block, or name one that exists%s.", target, listTargets(cfg.Targets)))
	return false
}

func listTargets(targets []Target) string {
	var names string
	for i, t := range targets {
		if i > 0 {
			names += ", "
		}
		names += t.Name
	}
	if names == "" {
		return ""
	}
	return " (" + names + ")"
}

// refuseSync reports whatever concerns syncing under a backend that cannot, and then the rest of what does not belong there.
func (s section) refuseSync(b *hcl.Block) {
	remedy := fmt.Sprintf(`Only file storage is pushed: use storage "file", or remove this from storage %q.`, b.Labels[0])
	content, rest, _ := b.Body.PartialContent(&hcl.BodySchema{ // what it cannot take apart is reported by the second look
		Attributes: []hcl.AttributeSchema{{Name: "push_interval"}, {Name: "pull_interval"}, {Name: "push_on_shutdown"}, {Name: "fencing"}, {Name: "start_from_checkpoint"}, {Name: "fail_if_no_checkpoint"}},
		Blocks:     []hcl.BlockHeaderSchema{{Type: "sync", LabelNames: []string{"target"}}, {Type: "seed", LabelNames: []string{"target"}}, {Type: "retention"}},
	})
	what := map[string]string{"sync": "sync", "seed": "begin with a seed", "retention": "have retention"}
	for _, inner := range content.Blocks {
		s.fault(inner.DefRange, fmt.Sprintf("storage %q cannot %s", b.Labels[0], what[inner.Type]), remedy)
	}
	for _, a := range content.Attributes {
		s.fault(a.Range, fmt.Sprintf("%s does not apply to storage %q", a.Name, b.Labels[0]), remedy)
	}
	_, found := rest.Content(&hcl.BodySchema{})
	s.report(fromHCL(s.source, found)...)
}

// refuseSchedule reports what has no meaning where each checkpoint is committed at once, and takes it out of the block.
func (s section) refuseSchedule(b *hcl.Block) {
	const remedy = `Each checkpoint of storage "object" is committed to its target before it counts, and a start takes the newest: remove this, or use storage "file".`
	s.refuseStray(b, `%s does not apply to storage "object"`, remedy, "push_interval", "push_on_shutdown", "start_from_checkpoint")
	content, rest, _ := b.Body.PartialContent(&hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{{Type: "sync", LabelNames: []string{"target"}}}}) // likewise
	for _, inner := range content.Blocks {
		s.fault(inner.DefRange, `storage "object" cannot sync`, `Name its one target with target = "NAME" in place of the block. `+remedy)
	}
	b.Body = rest
}

// refuseStray catches attributes that belong elsewhere, with a better remedy than "unexpected". The summary has one %s, for the name.
func (s section) refuseStray(b *hcl.Block, summary, remedy string, names ...string) {
	schema := &hcl.BodySchema{}
	for _, name := range names {
		schema.Attributes = append(schema.Attributes, hcl.AttributeSchema{Name: name})
	}
	content, rest, _ := b.Body.PartialContent(schema) // faults of the rest are reported when the block is loaded
	for _, a := range content.Attributes {
		s.fault(a.Range, fmt.Sprintf(summary, a.Name), remedy)
	}
	b.Body = rest
}
