package repository

import (
	"runtime"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// distinct lists the digests of files that are not zeros.
func distinct(files []Source) map[Digest]bool {
	set := map[Digest]bool{}
	for _, f := range files {
		for j, d := range f.Chunks {
			if Digest(d) != HoleDigest(chunkLen(f.Size, j)) {
				set[d] = true
			}
		}
	}
	return set
}

func TestAPlanCoversExactlyTheChunksThatTheParentLacks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before, after := drawFiles(t, "before"), drawFiles(t, "after")
		parent := push(t, nil, 1, before)
		plan, err := PlanPush(parent, after)
		if err != nil {
			t.Fatal(err)
		}
		want := distinct(after)
		for d := range distinct(before) {
			delete(want, d)
		}
		got := map[Digest]bool{}
		for _, n := range plan.New {
			if got[n.Digest] {
				t.Fatalf("chunk %s is planned twice", n.Digest)
			}
			got[n.Digest] = true
			f := plan.Files[n.File]
			if Digest(f.Chunks[n.Index]) != n.Digest || chunkLen(f.Size, n.Index) != n.Length {
				t.Fatalf("chunk %s does not lie where the plan says", n.Digest)
			}
			if !want[n.Digest] {
				t.Fatalf("chunk %s is planned, but the parent has it", n.Digest)
			}
		}
		if len(got) != len(want) {
			t.Fatalf("%d chunks planned, %d are missing from the parent", len(got), len(want))
		}
	})
}

func TestACommitBuiltFromAPlanRestoresEveryChunkFromWhereItLies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parent := push(t, nil, 1, drawFiles(t, "before"))
		after := drawFiles(t, "after")
		c := push(t, parent, 2, after)
		if err := c.check(); err != nil {
			t.Fatal(err)
		}
		lies := map[Digest]stored{}
		for d, at := range storedIn(parent, func(PackID) bool { return false }) {
			lies[d] = at
		}
		for _, f := range c.Files {
			for _, ch := range f.Chunks {
				if ch.Encoding == Hole {
					continue
				}
				at, old := lies[ch.Digest]
				if id := c.Packs[ch.Pack]; old && (id != at.pack || ch.Offset != at.offset || ch.Stored != at.length) {
					t.Fatalf("chunk %s was moved from pack %s", ch.Digest, at.pack)
				} else if !old && id.Number != 2 {
					t.Fatalf("new chunk %s lies in old pack %s", ch.Digest, id)
				}
			}
		}
	})
}

func TestTheOrderOfTheFilesGivenDoesNotChangeTheCommit(t *testing.T) {
	files := []Source{source("b", "ab0"), source("a", "ba1"), source("c/d", "2")}
	one := push(t, nil, 1, files)
	slices.Reverse(files)
	two := push(t, nil, 1, files)
	first, err1 := EncodeCommit(one)
	second, err2 := EncodeCommit(two)
	if err1 != nil || err2 != nil || !slices.Equal(first, second) {
		t.Fatalf("the same checkpoint gives different bytes (%v, %v)", err1, err2)
	}
}

func TestAnUnchangedCheckpointNeedsNoPackAndASealHoldsNothing(t *testing.T) {
	files := []Source{source("db", "abc0"), source("empty", "")}
	parent := push(t, nil, 1, files)
	plan, err := PlanPush(parent, files)
	if err != nil || len(plan.New) != 0 || plan.Holes != 1 || plan.Reused != 3 {
		t.Fatalf("plan of an unchanged checkpoint: %+v, %v", plan, err)
	}
	again := commitOf(t, plan, 2)
	if !slices.Equal(again.Packs, parent.Packs) || again.Totals.New != 0 {
		t.Fatalf("packs %v with %d new bytes, want the parent's", again.Packs, again.Totals.New)
	}
	plan, err = PlanPush(testSeal(2), files)
	if err != nil || len(plan.New) != 3 {
		t.Fatalf("plan on a seal: %d new, %v", len(plan.New), err)
	}
}

// CASES A58
func TestPacksAreFilledInOrderAndNeverAboveTheirLimit(t *testing.T) {
	files := []Source{}
	for i := range 40 {
		f := source(string(rune('a'+i%26))+string(rune('a'+i/26)), "x")
		f.Size = ChunkSize
		f.Chunks = [][32]byte{Sum([]byte{byte(i)})}
		files = append(files, f)
	}
	plan, err := PlanPush(nil, files)
	if err != nil {
		t.Fatal(err)
	}
	b := NewBuilder(plan, 1, 1)
	lastPack, lastEnd := -1, int64(0)
	for _, n := range plan.New {
		pack, offset, err := b.Add(n.Digest, Raw, n.Length)
		if err != nil {
			t.Fatal(err)
		}
		switch pack {
		case lastPack:
			if offset != lastEnd {
				t.Fatalf("chunk at %d, the pack ended at %d", offset, lastEnd)
			}
		case lastPack + 1:
			if offset != 0 {
				t.Fatalf("a new pack begins at %d", offset)
			}
			lastPack = pack
		default:
			t.Fatalf("pack %d after pack %d", pack, lastPack)
		}
		lastEnd = offset + n.Length
		if lastEnd > MaxPack || b.PackSize(pack) != lastEnd {
			t.Fatalf("pack %d of %d bytes", pack, lastEnd)
		}
	}
	if b.Packs() != 3 {
		t.Fatalf("40 chunks of 1 MiB in %d packs, want 3", b.Packs())
	}
}

func TestABuilderRefusesWhatIsNotPlanned(t *testing.T) {
	plan, err := PlanPush(nil, []Source{source("a", "ab")})
	if err != nil {
		t.Fatal(err)
	}
	a, b := plan.New[0], plan.New[1]
	for _, row := range []struct {
		name string
		do   func(*Builder) error
	}{
		{"a chunk of another plan", func(x *Builder) error { _, _, err := x.Add(Sum(nil), Raw, 1); return err }},
		{"raw of another length", func(x *Builder) error { _, _, err := x.Add(a.Digest, Raw, a.Length-1); return err }},
		{"zstd that did not pay", func(x *Builder) error { _, _, err := x.Add(a.Digest, Zstd, a.Length); return err }},
		{"zstd of nothing", func(x *Builder) error { _, _, err := x.Add(a.Digest, Zstd, 0); return err }},
		{"a hole in a pack", func(x *Builder) error { _, _, err := x.Add(a.Digest, Hole, 0); return err }},
		{"an encoding of the future", func(x *Builder) error { _, _, err := x.Add(a.Digest, "lz4", 5); return err }},
		{"a chunk added twice", func(x *Builder) error {
			if _, _, err := x.Add(a.Digest, Raw, a.Length); err != nil {
				t.Fatal(err)
			}
			_, _, err := x.Add(a.Digest, Raw, a.Length)
			return err
		}},
		{"tables with a chunk missing", func(x *Builder) error { _, _, err := x.Tables(); return err }},
		{"tables with an open pack", func(x *Builder) error {
			for _, n := range []NewChunk{a, b} {
				if _, _, err := x.Add(n.Digest, Raw, n.Length); err != nil {
					t.Fatal(err)
				}
			}
			_, _, err := x.Tables()
			return err
		}},
		{"sealing a pack that was never begun", func(x *Builder) error { _, err := x.Seal(0, Sum(nil)); return err }},
	} {
		if err := row.do(NewBuilder(plan, 1, 1)); err == nil {
			t.Errorf("%s is accepted", row.name)
		}
	}
}

// CASES A49
func TestAPlanRefusesFilesThatNoCommitCouldName(t *testing.T) {
	wrong := source("a", "ab")
	wrong.Size = 1
	negative := Source{Path: "a", Size: -1}
	device := source("a", "a")
	device.Mode |= 1 << 31
	for name, files := range map[string][]Source{
		"a path that leaves its directory": {source("../x", "a")},
		"a path given twice":               {source("x", "a"), source("x", "b")},
		"a file that is also a folder":     {source("x", "a"), source("x!", "a"), source("x/y", "b")},
		"a size that is not its chunks'":   {wrong},
		"a negative size":                  {negative},
		"a mode with type bits":            {device},
	} {
		if _, err := PlanPush(nil, files); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

func TestTheDigestsOfZerosAreThoseOfAllLengthsAndNeedFewZeros(t *testing.T) {
	lengths := map[int64]Digest{0: {}, 1: {}, zeroPiece - 1: {}, zeroPiece: {}, zeroPiece + 1: {}, 3*zeroPiece + 7: {}, ChunkSize - 1: {}, ChunkSize: {}}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	zeroDigests(lengths)
	runtime.ReadMemStats(&after)
	for n, got := range lengths {
		if got != HoleDigest(n) {
			t.Errorf("%d zeros: %s", n, got)
		}
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > ChunkSize/4 {
		t.Errorf("%d bytes were allocated", used)
	}
}

func TestARepairTakesWhatOnlyLostPacksHoldForNew(t *testing.T) {
	one := push(t, nil, 1, []Source{source("x", "abcd")})
	two := push(t, one, 2, []Source{source("x", "abed"), source("y", "c")})
	files := []Source{source("x", "abed"), source("y", "c")}
	plan, err := PlanRepair(two, files, func(id PackID) bool { return id == one.Packs[0] })
	if err != nil {
		t.Fatal(err)
	}
	if len(plan.New) != 3 || plan.Reused != 2 { // a, b and d were only there; e and the short c are the second commit's
		t.Errorf("%d chunks are new and %d reused", len(plan.New), plan.Reused)
	}
	repaired := commitOf(t, plan, 3)
	for _, id := range repaired.Packs {
		if id == one.Packs[0] {
			t.Error("the repaired commit names the lost pack")
		}
	}
}
