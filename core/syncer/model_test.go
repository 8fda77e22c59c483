package syncer

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/klauspost/compress/zstd"

	"github.com/cairnsync/cairn/core/repository"
	"github.com/cairnsync/cairn/sdk/sdktest"
)

// maxSteps bounds a story; calmSteps bounds what the newest writer may need to commit once nothing goes wrong any more.
const (
	maxSteps  = 300
	calmSteps = 200
)

// TestTheProtocolHoldsInEveryStory drives two writers and a reader over one store: replies are lost, requests land after their callers
// gave up, calls stall, hosts are paused, killed and started again on their disk or an empty one, commits are retired, and in one story of
// sixteen the store is wiped. In one of eight hosts probe the store before they claim it. One line of history, no reported commit lost, no false success, no false fence, and progress returns.
//
// CAIRN_MODEL_SEEDS sets the number of stories, CAIRN_MODEL_SEED plays one and prints it.
func TestTheProtocolHoldsInEveryStory(t *testing.T) {
	if text := os.Getenv("CAIRN_MODEL_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		story, fault := newStage(t).play(t, seed, mutants{})
		t.Logf("%s\n%s", strings.Join(story, "\n"), fault)
		if fault != "" {
			t.Fail()
		}
		return
	}
	seeds := modelSeeds(t)
	shards := uint64(runtime.GOMAXPROCS(0))
	for shard := range shards {
		t.Run(fmt.Sprintf("shard %d", shard), func(t *testing.T) {
			t.Parallel()
			stage := newStage(t)
			for seed := shard; seed < seeds; seed += shards {
				if story, fault := stage.play(t, seed, mutants{}); fault != "" {
					t.Fatalf("CAIRN_MODEL_SEED=%d: %s\n%s", seed, fault, strings.Join(story, "\n"))
				}
			}
		})
	}
}

func modelSeeds(t *testing.T) uint64 {
	text := os.Getenv("CAIRN_MODEL_SEEDS")
	if text == "" {
		return defaultSeeds
	}
	seeds, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return seeds
}

// TestTheProtocolHoldsWithTheCommitsOfFormatOne plays fewer stories with the real codec: compressing a commit costs more than all the rest of
// a story.
func TestTheProtocolHoldsWithTheCommitsOfFormatOne(t *testing.T) {
	stage := newStage(t)
	stage.codec = commitCodec{encode: repository.EncodeCommit, decode: repository.DecodeCommit}
	for seed := range modelSeeds(t) / 100 {
		if story, fault := stage.play(t, seed, mutants{}); fault != "" {
			t.Fatalf("seed %d: %s\n%s", seed, fault, strings.Join(story, "\n"))
		}
	}
}

// TestTheModelNoticesEachMissingRule takes the rules away one by one.
func TestTheModelNoticesEachMissingRule(t *testing.T) {
	for _, row := range []struct {
		name  string
		wrong mutants
	}{
		{"no seal", mutants{noSeal: true}},
		{"commits are listed before the claim", mutants{listBeforeClaim: true}},
		{"success is told before the epoch is looked at again", mutants{tellEarly: true}},
		{"our own epoch is not looked at", mutants{ownEpochUnseen: true}},
		{"a conflict is taken for success", mutants{conflictIsSuccess: true}},
		{"a conflict is taken for a takeover without reading", mutants{conflictIsFenced: true}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			stage := newStage(t)
			for seed := range uint64(20_000) {
				if _, fault := stage.play(t, seed, row.wrong); fault != "" {
					t.Logf("seed %d: %s", seed, fault)
					return
				}
			}
			t.Error("the model did not notice")
		})
	}
}

// stage is what stories share to be quick: compressors and a spool.
type stage struct {
	spool  *Spool
	dec    *zstd.Decoder
	codecs [][]*chunkCodec // of each host
	codec  commitCodec
	alone  bool // one host at a time, on a store that takes every create
}

func newStage(t *testing.T) *stage {
	t.Helper()
	dir := t.TempDir()
	if shm, err := os.MkdirTemp("/dev/shm", "cairn-model-*"); err == nil { // memory where there is some: no story is about the disk
		t.Cleanup(func() { os.RemoveAll(shm) })
		dir = shm
	}
	s := &stage{codec: plainCodec()}
	var err error
	if s.spool, err = OpenSpool(dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.spool.Close() })
	if s.dec, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1)); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		packs, err := newPacker(s.spool)
		if err != nil {
			t.Fatal(err)
		}
		for _, codec := range packs.codecs {
			s.warm(t, codec)
		}
		s.codecs = append(s.codecs, packs.codecs)
	}
	return s
}

// warm uses a compressor once: it makes its channels at the first use, which must be outside of any bubble.
func (s *stage) warm(t *testing.T, codec *chunkCodec) {
	t.Helper()
	packed, err := codec.compress([]byte(strings.Repeat("warm ", 100)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.dec.DecodeAll(packed, nil); err != nil {
		t.Fatal(err)
	}
}

// play runs the story of a seed and gives it with its first violation, "" when there is none.
func (s *stage) play(t *testing.T, seed uint64, wrong mutants) (story []string, fault string) {
	synctest.Test(t, func(*testing.T) {
		w := &world{
			rng: rand.New(rand.NewPCG(seed, 1)), mem: sdktest.NewMem(), checker: newChecker(s.dec, s.codec), frozen: map[string]int{}, outage: map[string]int{},
			reader: &reader{name: "R", done: make(chan struct{})},
		}
		w.faults, w.wipes, w.probes = w.rng.IntN(8), w.rng.IntN(16) == 0, w.rng.IntN(8) == 0
		names := []string{"A", "B"}
		if s.alone {
			w.alone, w.lies, w.fencing, w.wipes, names = true, true, FencingAdvisory, false, names[:1]
			w.faults += 4 // one host alone meets less
		}
		for i, name := range names {
			w.hosts = append(w.hosts, &host{name: name, index: i, spool: s.spool, codecs: s.codecs[i], wrong: wrong})
		}
		ctx, cancel := context.WithCancel(context.Background())
		go w.reader.run(ctx, w)
		w.hosts[0].start(w)
		for range 20 + w.rng.IntN(maxSteps) {
			if !w.step() || w.checker.fault != "" {
				break
			}
		}
		if w.checker.fault == "" && !w.wiped { // what is left of a wiped store is for the operator
			w.progress(s.codecs[2], s.spool, wrong)
		}
		cancel()
		for _, h := range w.hosts {
			if h.life != nil {
				h.kill()
			}
		}
		synctest.Wait()
		story, fault = w.story, w.checker.fault
	})
	return story, fault
}

// progress: faults have stopped and what is under way has landed. The newest writer commits, or, when all have stopped, a fresh start does.
func (w *world) progress(codecs []*chunkCodec, spool *Spool, wrong mutants) {
	w.calm = true
	w.tell("from here on nothing goes wrong")
	clear(w.frozen)
	for _, c := range w.pending {
		c.stalled = false
	}
	for len(w.late) > 0 {
		w.land(w.rng.IntN(len(w.late)))
	}
	if w.newestWriterCommits() {
		return
	}
	if w.alone {
		w.hosts[0].kill()
		w.sweepAbandoned()
		w.settle()
	}
	fresh := &host{name: "C", index: 2, spool: spool, codecs: codecs, wrong: wrong}
	w.hosts = append(w.hosts, fresh)
	fresh.start(w)
	for range calmSteps {
		if w.checker.fault != "" || len(fresh.life.told) > 0 || !w.step() {
			break
		}
	}
	if w.checker.fault == "" && len(fresh.life.told) == 0 {
		w.checker.violation("no progress: a fresh start does not commit though nothing goes wrong")
	}
}

// newestWriterCommits lets everyone go on; true when the writer of the highest epoch committed something new meanwhile.
func (w *world) newestWriterCommits() bool {
	var newest *life
	told := 0
	for _, h := range w.hosts {
		if !h.alive() || h.life.worker == nil {
			continue
		}
		if e := h.life.worker.Status().Epoch; e > 0 && (newest == nil || e > newest.worker.Status().Epoch) {
			newest, told = h.life, len(h.life.told)
		}
	}
	for range calmSteps {
		if w.checker.fault != "" || newest != nil && len(newest.told) > told || !w.step() {
			break
		}
	}
	return newest != nil && len(newest.told) > told
}
