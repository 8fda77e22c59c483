package host

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cairnsync/cairn/sdk/client"
)

// The scenarios of the ancestor (CASES E) that need a standby or a seed. Its read_bucket is our seed.

// ownRepository is a sync block of a repository beside the one that seedTarget makes, which is "p".
const ownRepository = "    sync \"t\" {\n      prefix = \"own\"\n      pull_interval = \"100ms\"\n    }\n"

// fromP is a seed block for that.
const fromP = "      prefix = \"p\""

// pulledStep waits until a standby has a step whole.
func (r *liveHost) pulledStep(step uint64) *liveHost {
	r.t.Helper()
	r.until("the standby has the step", func() bool {
		s := r.view("p").Standby
		return s != nil && s.Pulled != nil && s.Pulled.Step == step
	})
	return r
}

// followed waits until a standby has something.
func (r *liveHost) followed() client.Commit {
	r.t.Helper()
	r.until("the standby has pulled", func() bool { s := r.view("p").Standby; return s != nil && s.Pulled != nil })
	return *r.view("p").Standby.Pulled
}

// activate makes the standby the primary.
func (r *liveHost) activate(opts client.ActivateOptions) client.Activated {
	r.t.Helper()
	done, err := r.Activate(r.t.Context(), "p", opts)
	must(r.t, err)
	equal(r.t, "state", r.view("p").State, "running")
	return done
}

// tree lists a folder with the sizes of its files.
func tree(t *testing.T, root string) string {
	t.Helper()
	var all []string
	must(t, filepath.WalkDir(root, func(path string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			all = append(all, path+" "+e.Type().String())
		}
		return err
	}))
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// CASES E13: standby_activation.
func TestAStandbyIsActivatedWithTheRowsOfItsPrimary(t *testing.T) {
	w := newWorld(t)
	_, before := seedTarget(w)
	h := w.start(conf{data: "elsewhere", initial: "standby", pull: "100ms"})
	pulled := h.followed()
	view := h.view("p")
	equal(t, "state", view.State, "standby")
	equal(t, "desired", view.DesiredState, "standby")
	must(t, h.host.Ready())
	contains(t, h.log.String(), "checkpoint pulled")
	if _, err := h.Ingest(t.Context(), "p", "rows", "", 0, "", rows(0, 1)); code(err) != client.CodeNotRunning {
		t.Errorf("a standby took records: %v", err)
	}

	done := h.activate(client.ActivateOptions{})
	equal(t, "rows", h.rows(), before)
	equal(t, "bytes pulled by the activation of a warm copy", done.PulledBytes, 0)
	equal(t, "epoch", done.Claims[0].Epoch, 2)
	contains(t, done.Claims[0].Fenced, "host ")
	equal(t, "from", done.From.UUID, pulled.UUID)
	contains(t, done.Loss.Text, "nothing that was committed is missing")
	h.insert(20, 25)
	h.checkpoint()
	h.push()
}

// CASES E14, E17: standby_activation_from_uuid, standby_fallback_from_uuid.
func TestAStandbyOfAUUIDHasTheRowsOfThatCheckpointAlone(t *testing.T) {
	w := newWorld(t)
	primary := w.start(conf{}).up()
	primary.insert(0, 9)
	before := primary.rows()
	primary.checkpoint()
	named := primary.push()
	primary.insert(9, 30)
	primary.checkpoint()
	primary.push()

	h := w.start(conf{data: "elsewhere", initial: "standby", pull: "100ms", from: named})
	equal(t, "pulled", h.followed().UUID.String(), named)
	primary.kill()
	done := h.activate(client.ActivateOptions{})
	equal(t, "rows", h.rows(), before)
	if len(done.Warnings) != 1 {
		t.Fatalf("warnings %q", done.Warnings)
	}
	contains(t, done.Warnings[0], "held until", "adopt")
	h.checkpoint()
	if _, err := h.SyncCheckpoint(t.Context(), "p", true); err == nil {
		t.Fatal("newer commits were overruled without a word of the operator")
	}
	must(t, h.Adopt(t.Context(), "p", "t"))
	h.push()
}

// CASES E16: standby_fallback.
func TestAStandbyThatFollowsHasTheLatestRowsAndKeepsThemOverARestart(t *testing.T) {
	w := newWorld(t)
	primary := w.start(conf{}).up()
	standby := conf{data: "elsewhere", initial: "standby", pull: "100ms"}
	h := w.start(standby)
	for round := range 4 {
		primary.insert(round*10, round*10+7)
		primary.checkpoint()
		primary.push()
		h.pulledStep(primary.view("p").Step)
	}
	before := primary.rows()
	primary.stop()
	h.activate(client.ActivateOptions{})
	equal(t, "rows", h.rows(), before)
	h.stop()

	again := w.start(standby).up()
	equal(t, "rows after a restart", again.rows(), before)
	equal(t, "desired", again.view("p").DesiredState, "running")
	must(t, again.Stop(t.Context(), "p", true))
	again.until("it has stopped", func() bool { return again.view("p").State == "stopped" })
	must(t, again.Start(t.Context(), "p"))
	equal(t, "rows after stop and start", again.up().rows(), before)
}

// CASES E19, E20: read_bucket, read_bucket_from_uuid.
func TestAnEmptyRepositoryBeginsWithTheSeedAndNeverWritesToIt(t *testing.T) {
	for name, byID := range map[string]bool{"latest": false, "by uuid": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			_, before := seedTarget(w)
			theirs := tree(t, w.path("target", "p"))
			c := conf{data: "elsewhere", from: "latest", strict: true, sync: ownRepository, seed: fromP}
			if byID {
				c.from = seedCheckpoint(w)
			}
			h := w.start(c).up()
			equal(t, "rows", h.rows(), before)
			contains(t, h.view("p").StartedFrom, `of the seed "t" is restored`)
			h.insert(40, 44)
			h.checkpoint()
			h.push()
			grown := h.rows()
			h.kill()
			equal(t, "the seed", tree(t, w.path("target", "p")), theirs)

			c.data, c.from = "third", "latest" // there is something of our own now
			equal(t, "rows", w.start(c).up().rows(), grown)
		})
	}
}

// seedCheckpoint is the id of the one checkpoint that seedTarget has put there.
func seedCheckpoint(w *world) string {
	w.t.Helper()
	h := w.start(conf{data: "looking", initial: "standby", pull: "100ms"})
	defer h.stop()
	return h.followed().UUID.String()
}

// CASES E21, E22: read_bucket_standby, read_bucket_standby_from_uuid.
func TestAStandbyBeginsWithTheSeed(t *testing.T) {
	for name, from := range map[string]bool{"latest": false, "by uuid": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			_, before := seedTarget(w)
			c := conf{data: "elsewhere", initial: "standby", sync: ownRepository, seed: fromP}
			if from {
				c.from = seedCheckpoint(w)
			}
			theirs := tree(t, w.path("target", "p"))
			h := w.start(c)
			if pulled := h.followed(); !pulled.Seed || h.view("p").Standby.Newest == nil || !h.view("p").Standby.Newest.Seed {
				t.Errorf("standby %+v", h.view("p").Standby)
			}
			h.activate(client.ActivateOptions{})
			equal(t, "rows", h.rows(), before)
			h.insert(40, 44)
			h.checkpoint()
			h.push()
			equal(t, "the seed", tree(t, w.path("target", "p")), theirs)
		})
	}
}

// CASES E23, E30: bucket_preferred_over_read_bucket, bucket_preferred_over_read_bucket_uuid.
func TestWhatIsOurOwnGoesBeforeTheSeed(t *testing.T) {
	for name, byID := range map[string]bool{"latest": false, "by uuid": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			seedTarget(w)
			first := w.start(conf{sync: ownRepository}).up()
			first.insert(50, 53)
			own := first.rows()
			first.checkpoint()
			id := first.push()
			first.kill()
			c := conf{data: "elsewhere", from: "latest", strict: true, sync: ownRepository, seed: fromP}
			if byID {
				c.from = id
			}
			equal(t, "rows", w.start(c).up().rows(), own)
		})
	}
}

// CASES E24: standby_takes_over_from_read_bucket.
func TestAStandbyLeavesTheSeedOnceThereIsSomethingOfOurOwn(t *testing.T) {
	w := newWorld(t)
	seedTarget(w)
	h := w.start(conf{data: "elsewhere", initial: "standby", sync: ownRepository, seed: fromP})
	equal(t, "of the seed", h.followed().Seed, true)
	primary := w.start(conf{data: "primary", from: "latest", sync: ownRepository, seed: fromP}).up()
	for round := range 3 {
		primary.insert(60+round*10, 64+round*10)
		primary.checkpoint()
		primary.push()
	}
	before := primary.rows()
	h.until("the standby follows our own repository", func() bool {
		s := h.view("p").Standby.Pulled
		return !s.Seed && s.Step == primary.view("p").Step
	})
	h.activate(client.ActivateOptions{})
	equal(t, "rows", h.rows(), before)
	equal(t, "one pipeline", h.view("p").ID, primary.view("p").ID)
}

// CASES E25, E26, E27: local_checkpoint_priority_from_uuid, local_priority_over_read_bucket, local_priority_over_read_bucket_uuid.
func TestWhatIsOnlyLocalGoesBeforeEverything(t *testing.T) {
	for name, row := range map[string]struct{ seed, byID bool }{
		"a uuid that is only local": {byID: true}, "before the seed": {seed: true}, "before the seed, by uuid": {seed: true, byID: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			seedTarget(w)
			first := w.start(conf{sync: ownRepository}).up()
			first.insert(70, 74)
			if !row.seed {
				first.checkpoint()
				first.push()
				first.insert(74, 78)
			}
			local := first.checkpoint()
			both := first.rows()
			first.kill()
			mustRemove(t, w.path("data", "p", "state"))
			c := conf{from: "latest", strict: true, sync: ownRepository}
			if row.seed {
				c.seed = fromP
			}
			if row.byID {
				c.from = local
			}
			h := w.start(c)
			h.begin()
			equal(t, "rows", h.up().rows(), both)
			contains(t, h.view("p").StartedFrom, local, "local checkpoint")
			if strings.Contains(h.log.String(), "checkpoint pulled") {
				t.Error("something was pulled")
			}
		})
	}
}

// CASES E29: read_bucket_strict_fail.
func TestAnEmptySeedBesideAnEmptyTargetIsNoCheckpoint(t *testing.T) {
	w := newWorld(t)
	h := w.start(conf{from: "latest", strict: true, sync: ownRepository, seed: fromP})
	contains(t, h.failed(), "none of the targets holds a checkpoint", `nor does the seed "t" hold`, "fail_if_no_checkpoint")
}

// CASES E28: remote_checkpoints.
func TestTheListingOfATargetHasEveryPush(t *testing.T) {
	w := newWorld(t)
	h := w.start(conf{}).up()
	var ids []string
	for i := range 2 {
		h.insert(i*5, i*5+5)
		h.checkpoint()
		ids = append(ids, h.push())
	}
	remote, err := h.RemoteCheckpoints(t.Context(), "p", "")
	must(t, err)
	if len(remote) != 2 || remote[0].UUID.String() != ids[0] || remote[1].UUID.String() != ids[1] {
		t.Errorf("listed %+v, pushed %v", remote, ids)
	}
}

// CASES E10: owner_lock_allows_renamed_pipeline.
func TestARenamedPipelineGoesOnWithItsRepository(t *testing.T) {
	w := newWorld(t)
	_, before := seedTarget(w)
	format := read(t, w.path("target", "p", "FORMAT.json"))
	c := conf{data: "elsewhere", from: "latest", strict: true, sync: "    sync \"t\" {\n      prefix = \"p\"\n    }\n"}
	text := strings.Replace(w.hcl(c), `pipeline "p"`, `pipeline "renamed"`, 1)
	h := w.run(w.load(text))
	h.until("the renamed pipeline runs", func() bool { return h.view("renamed").State == "running" })
	var got strings.Builder
	must(t, h.Query(t.Context(), "renamed", "SELECT id, text FROM t0 ORDER BY id, text", &got))
	equal(t, "rows", got.String(), before)
	_, err := h.Ingest(t.Context(), "renamed", "rows", "", 0, "", rows(90, 93))
	must(t, err)
	must(t, h.CheckpointAndWait(t.Context(), "renamed"))
	_, err = h.SyncCheckpoint(t.Context(), "renamed", true)
	must(t, err)
	equal(t, "FORMAT.json", read(t, w.path("target", "p", "FORMAT.json")), format)
}

func TestAStandbyThatIsToldToFollowAgainKnowsWhatItHasFollowed(t *testing.T) {
	w := newWorld(t)
	seedTarget(w)
	h := w.start(conf{data: "elsewhere", initial: "standby", pull: "100ms"})
	pulled := h.followed()
	must(t, h.Stop(t.Context(), "p", false))
	h.until("it has stopped", func() bool { return h.view("p").State == "stopped" })
	must(t, os.Rename(w.path("target", "p"), w.path("away")))
	must(t, h.Standby(t.Context(), "p"))
	h.until("it misses what it has followed", func() bool {
		s := h.view("p").Standby
		return s != nil && strings.Contains(s.Error, "nothing is there now")
	})
	if s := h.view("p").Standby; s.Pulled == nil || s.Pulled.Number != pulled.Number {
		t.Errorf("pulled %+v", s.Pulled)
	}
}
