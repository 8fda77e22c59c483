package syncer

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/cairnsync/cairn/core/repository"
	"github.com/cairnsync/cairn/sdk/sdktest"
)

// maxSteps bounds a story.
const maxSteps = 340

// TestTheProtocolHoldsInEveryStory is the simulation: two hosts that push and keep the repository tidy, a standby that is activated, pins, proofs
// and a reader, around one store. Replies are lost, requests land after their callers gave up, calls stall, machines are paused
// (some for a week), cut off, killed and started again on their disk or an empty one, clocks jump, disks and the store are full, and in one story of
// sixteen the store is wiped. One line of history, no reported commit lost, nothing listed that cannot be restored, nothing restored that the
// circuit never had, no false success, no false fence, nothing deleted that is needed, and progress when the faults end.
//
// CAIRN_MODEL_SEEDS sets the number of stories, CAIRN_MODEL_FROM the first. CAIRN_MODEL_SEED plays one and prints it, with CAIRN_MODEL_FAULTS as the most that may go
// wrong in it. See docs/simulation.md.
// CASES A27, A28, A37, A38
func TestTheProtocolHoldsInEveryStory(t *testing.T) {
	if replayed(t, play{}) {
		return
	}
	from, seeds := envNumber(t, "CAIRN_MODEL_FROM", 0), modelSeeds(t)
	shards := uint64(runtime.GOMAXPROCS(0))
	for shard := range shards {
		t.Run(fmt.Sprintf("shard %d", shard), func(t *testing.T) {
			t.Parallel()
			stage := newStage(t)
			for seed := from + shard; seed < from+seeds; seed += shards {
				if told := stage.play(t, seed, play{}); told.fault != "" {
					t.Fatal(stage.simplest(t, told))
				}
			}
		})
	}
}

// replayed plays the one story that the environment names.
func replayed(t *testing.T, p play) bool {
	text := os.Getenv("CAIRN_MODEL_SEED")
	if text == "" {
		return false
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	if text := os.Getenv("CAIRN_MODEL_FAULTS"); text != "" {
		if p.faults, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
		p.bounded = true
	}
	told := newStage(t).play(t, seed, p)
	t.Log(told)
	if told.fault != "" {
		t.Fail()
	}
	return true
}

func modelSeeds(t *testing.T) uint64 { return envNumber(t, "CAIRN_MODEL_SEEDS", defaultSeeds) }

func envNumber(t *testing.T, name string, otherwise uint64) uint64 {
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestTheProtocolHoldsWithTheCommitsOfFormatOne plays fewer stories with the real codec: compressing a commit costs more than all the rest of
// a story.
func TestTheProtocolHoldsWithTheCommitsOfFormatOne(t *testing.T) {
	t.Parallel()
	stage := newStage(t)
	stage.codec = commitCodec{encode: repository.EncodeCommit, decode: repository.DecodeCommit}
	for seed := range modelSeeds(t) / 100 {
		if told := stage.play(t, seed, play{}); told.fault != "" {
			t.Fatal(told)
		}
	}
}

// TestAStoryIsAFunctionOfItsSeed plays stories twice: what cannot be played again cannot be understood.
func TestAStoryIsAFunctionOfItsSeed(t *testing.T) {
	stage := newStage(t)
	// In what errors say: the names of probes, and which of several reads at once failed first. When a story ends, all who still wait are cut
	// off at the same moment, and which of them tells it first is of no account.
	random := regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|commit/[0-9]{20}|(?m:^.*context canceled\n?)`)
	for seed := range uint64(100) {
		first, second := stage.play(t, seed, play{}), stage.play(t, seed, play{})
		if random.ReplaceAllString(first.String(), "") != random.ReplaceAllString(second.String(), "") {
			t.Fatalf("seed %d went one way\n%s\nand then another\n%s", seed, first, second)
		}
	}
}

// play is how a story is to be played.
type play struct {
	wrong   mutants
	alone   bool // one host at a time, on a store that takes every create
	rolls   bool // the store is put back to an older state
	bounded bool // no more than faults may go wrong
	faults  int
}

func (p play) test() string {
	switch {
	case p.alone:
		return "TestUnderAdvisoryFencingOneWriterAloneLosesNothing"
	case p.rolls:
		return "TestWhatIsToldRestoresAlsoWhenTheStoreIsPutBack"
	}
	return "TestTheProtocolHoldsInEveryStory"
}

// simplest looks for the story of the same seed in which the fewest things go wrong and which still ends badly.
func (s *stage) simplest(t *testing.T, told tale) tale {
	t.Helper()
	p := told.play
	p.bounded = true
	for p.faults = range told.faults {
		if simpler := s.play(t, told.seed, p); simpler.fault != "" {
			return simpler
		}
	}
	return told
}

// stage is what stories share to be quick: compressors and spools.
type stage struct {
	spools []*Spool // of each host
	dec    *chunkDecoder
	codecs [][]*chunkCodec // of each host
	codec  commitCodec
}

// cast is how many hosts a story may have: A and B, the standby S, and C, who comes when nothing goes wrong any more.
const cast = 4

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{codec: plainCodec()}
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	s.dec = &chunkDecoder{zstd: dec}
	for range cast {
		spool, err := OpenSpool(quickDir(t))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { spool.Close() })
		packs, err := newPacker(spool)
		if err != nil {
			t.Fatal(err)
		}
		for _, codec := range packs.codecs {
			s.warm(t, codec)
		}
		s.spools, s.codecs = append(s.spools, spool), append(s.codecs, packs.codecs)
	}
	return s
}

// quickDir lies in memory where there is some: no story is about the disk.
func quickDir(t *testing.T) string {
	t.Helper()
	shm, err := os.MkdirTemp("/dev/shm", "cairn-model-*")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(shm) })
	return shm
}

// warm uses a compressor once: it makes its channels at the first use, which must be outside of any bubble.
func (s *stage) warm(t *testing.T, codec *chunkCodec) {
	t.Helper()
	packed, err := codec.compress([]byte(strings.Repeat("warm ", 100)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.dec.zstd.DecodeAll(packed, nil); err != nil {
		t.Fatal(err)
	}
}

// play tells the story of a seed.
func (s *stage) play(t *testing.T, seed uint64, p play) (told tale) {
	synctest.Test(t, func(*testing.T) {
		w := s.newWorld(seed, p)
		ctx, cancel := context.WithCancel(context.Background())
		for _, v := range w.visitors {
			v.start(func() { w.reads(ctx, v) })
		}
		w.hosts[0].start(w)
		for range 20 + w.rng.IntN(maxSteps) {
			goesOn := w.step()
			synctest.Wait() // what the step has begun may end without a call, and then tells what it found
			if !goesOn || w.checker.found() != "" {
				break
			}
		}
		if w.checker.found() == "" && !w.wiped { // what is left of a wiped store is for the operator
			told.calm = w.recovers(ctx, p.wrong)
		}
		cancel()
		for _, h := range w.hosts {
			if h.life != nil {
				h.kill()
			}
		}
		synctest.Wait()
		if w.checker.found() == "" {
			w.audit()
		}
		told.seed, told.play, told.story, told.fault = seed, p, w.story, w.checker.found()
		told.faults, told.calls = w.trouble.met, w.calls
	})
	return told
}

func (s *stage) newWorld(seed uint64, p play) *world {
	w := &world{
		rng: rand.New(rand.NewPCG(seed, 2)), mem: sdktest.NewMem(), checker: newChecker(s.dec, s.codec), stage: s, began: time.Now(),
	}
	w.trouble, w.policy, w.probes = newTrouble(w.rng), newPolicy(w.rng), w.rng.IntN(8) == 0
	names := []string{"A", "B", "S"}
	if p.alone {
		w.alone, w.lies, w.fencing, w.trouble.wipes, names = true, true, FencingAdvisory, false, names[:1]
		w.trouble.faults += 4 // one host alone meets less
	}
	if p.rolls {
		w.trouble.rolls, w.trouble.wipes = true, false
		w.trouble.faults += 2
	}
	if p.bounded {
		w.trouble.faults = p.faults
	}
	for i, name := range names {
		w.addHost(name, i, p.wrong)
	}
	w.hosts[len(names)-1].standby = !p.alone
	v := &visitor{machine: &machine{name: "R"}}
	w.visitors, w.machines = append(w.visitors, v), append(w.machines, v.machine)
	return w
}

func (w *world) addHost(name string, i int, wrong mutants) *host {
	h := &host{machine: &machine{name: name}, index: i, spool: w.stage.spools[i], codecs: w.stage.codecs[i], wrong: wrong}
	h.spool.create = func(dir, pattern string) (*os.File, error) { return h.createTemp(dir, pattern) }
	w.hosts, w.machines = append(w.hosts, h), append(w.machines, h.machine)
	return h
}
