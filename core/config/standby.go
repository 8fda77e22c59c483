package config

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"
)

// beginnings reads what concerns following and beginning with another repository, and finds what contradicts itself there.
func (s section) beginnings(p Pipeline, cfg *Config, backend *Backend) {
	s.onePullInterval()
	if !s.opts.whole() {
		return // an offline command reads repositories, and starts nothing
	}
	s.seed(p, cfg, backend)
	if backend.Start.From != "" && len(s.all("sync")) == 0 && backend.seed == nil {
		s.warn(s.where("start_from_checkpoint"), "start_from_checkpoint has no target to look at", "Without a sync block only local checkpoints are found. Add one, or leave the attribute out.")
	}
}

// follows asks that a pipeline which begins as a standby has something to follow.
func (s section) follows(p Pipeline) {
	if _, follows := p.Backend.Follows(); p.Initial == InitiallyStandby && !follows && s.opts.whole() {
		s.fault(s.where("initial"), fmt.Sprintf("pipeline %q is a standby with nothing to follow", p.Name), `Add pull_interval = "5s" to the sync block of the target that its primary pushes to.`)
	}
}

// onePullInterval asks that a standby follows one target.
func (s section) onePullInterval() {
	var first *hcl.Attribute
	for _, b := range s.all("sync") {
		attrs, _, _ := b.Body.PartialContent(&hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: "pull_interval"}}}) // checked elsewhere
		a := attrs.Attributes["pull_interval"]
		switch {
		case a == nil:
		case first == nil:
			first = a
		default:
			s.fault(a.Range, "a second pull_interval", fmt.Sprintf("A standby follows one target; line %d has the first. Remove one.", first.Range.Start.Line))
		}
	}
}

func (s section) seed(p Pipeline, cfg *Config, backend *Backend) {
	blocks := s.all("seed")
	if len(blocks) == 0 {
		return
	}
	inner := s.load(blocks[0])
	seed := Seed{Target: inner.label, From: inner.whichCheckpoint("from")}
	backend.seed = &seed
	prefix, ok := inner.prefix(p)
	if seed.Prefix = prefix; inner.known(inner.label, inner.labels, cfg) && ok {
		inner.refuseOwnRepository(seed, backend.repos)
	}
	if _, follows := backend.Follows(); backend.Start.From == "" && !follows {
		s.fault(inner.at, "the seed is never looked at", `Set start_from_checkpoint = "latest" beside it, or remove the block: without that attribute only local state is started.`)
	}
}

// refuseOwnRepository reports a seed that is where the pipeline writes itself.
func (s section) refuseOwnRepository(seed Seed, repos []Sync) {
	for _, own := range repos {
		if own.Target == seed.Target && validPrefix(own.Prefix) && (inside(own.Prefix, seed.Prefix) || inside(seed.Prefix, own.Prefix)) {
			s.fault(s.at, fmt.Sprintf("the seed is the pipeline's own repository %q on target %q", own.Prefix, own.Target),
				"It is looked at anyway: name another pipeline's prefix, or remove the block.")
			return
		}
	}
}
