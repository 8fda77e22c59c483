package repository

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// twoCommits share the chunks a to d; the second has e in the place of b.
func twoCommits(t tb) (one, two *Commit) {
	one = push(t, nil, 1, []Source{source("x", "abcd0e")})
	two = push(t, one, 2, []Source{source("x", "afcd0e"), source("y", "a")})
	return one, two
}

func TestAnInventoryCountsWhatIsSharedOnce(t *testing.T) {
	one, two := twoCommits(t)
	var v Inventory
	v.Add(one, true)
	alone := v.Chunks()
	v.Add(two, true)
	if extra := v.Chunks() - alone; extra != 2 { // f, and the short a of y
		t.Errorf("the second commit adds %d chunks, want 2", extra)
	}
	if got := v.NamedBy(one.Packs[0]); !slices.Equal(got, []uint64{1, 2}) {
		t.Errorf("the first pack is named by %v", got)
	}
	if !v.Needs(two.Packs[1]) || v.Needs(PackID{}) {
		t.Error("which packs are needed is told wrongly")
	}
}

func TestTheLengthOfAPackIsKnownToTheByteFromTheCommitThatWroteIt(t *testing.T) {
	one, two := twoCommits(t)
	pack := one.Packs[0]
	for _, row := range []struct {
		name    string
		commits []*Commit
		off     int64 // of the size that is listed
		right   bool
	}{
		{"as written", []*Commit{one, two}, 0, true},
		{"a byte short", []*Commit{one, two}, -1, false},
		{"a byte too many", []*Commit{one, two}, 1, false},
		{"a byte too many, and the commit that wrote it is gone", []*Commit{two}, 1, true},
		{"too short for what is left", []*Commit{two}, -1, false},
		{"longer than any pack", []*Commit{two}, MaxPack, false},
	} {
		var v, whole Inventory
		whole.Add(one, false)
		for _, c := range row.commits {
			v.Add(c, false)
		}
		if err := v.CheckSize(pack, whole.packs[pack].written+row.off); (err == nil) != row.right {
			t.Errorf("%s: %v", row.name, err)
		}
	}
}

func TestADeepPlanReadsEachPackOnceAndEveryChunk(t *testing.T) {
	one, two := twoCommits(t)
	var v Inventory
	v.Add(one, true)
	v.Add(two, true)
	seen, chunks := map[PackID]bool{}, 0
	for _, r := range v.All() {
		if seen[r.Pack] {
			t.Errorf("pack %s is read twice", r.Pack)
		}
		seen[r.Pack] = true
		for _, ch := range r.Chunks {
			if ch.Offset < r.Offset || ch.Offset+ch.Stored > r.Offset+r.Length {
				t.Errorf("chunk at %d lies outside of its range", ch.Offset)
			}
			if use := v.Use(r.Pack, ch); use.Commit == 0 || use.File == "" {
				t.Errorf("nobody needs the chunk at %d of %s", ch.Offset, r.Pack)
			}
			chunks++
		}
	}
	if len(seen) != len(v.Packs()) || chunks != v.Chunks() {
		t.Errorf("%d of %d packs and %d of %d chunks are read", len(seen), len(v.Packs()), chunks, v.Chunks())
	}
}

func TestASampleHasItsShareOfAllChunksAndOfTheNewestCommit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		one, two := twoCommits(t)
		var v Inventory
		v.Add(one, true)
		v.Add(two, true)
		fraction := rapid.Float64Range(0.001, 1).Draw(t, "fraction")
		seed := rapid.Uint64().Draw(t, "seed")
		count := func(ranges []Range) (all, newest int) {
			for _, r := range ranges {
				for _, ch := range r.Chunks {
					if all++; v.Use(r.Pack, ch).Commit == 2 {
						newest++
					}
				}
			}
			return all, newest
		}
		share := func(n int) int { return int(math.Ceil(fraction * float64(n))) }
		allChunks, allNewest := count(v.All())
		got, gotNewest := count(v.Sample(fraction, seed, 2))
		if got < share(allChunks) || gotNewest < share(allNewest) || got > share(allChunks)+share(allNewest) {
			t.Fatalf("fraction %v: %d of %d chunks, %d of %d of the newest commit", fraction, got, allChunks, gotNewest, allNewest)
		}
		if again, _ := count(v.Sample(fraction, seed, 2)); again != got {
			t.Fatal("the same seed picks another number of chunks")
		}
	})
}
