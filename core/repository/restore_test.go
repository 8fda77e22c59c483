package repository

import (
	"testing"

	"pgregory.net/rapid"
)

func TestARestoreReadsEachNeededChunkOnceAndFillsEveryPlace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parent := push(t, nil, 1, drawFiles(t, "before"))
		c := push(t, parent, 2, drawFiles(t, "after"))
		filled := map[Place]bool{}
		for i, f := range c.Files {
			for j := range f.Chunks {
				if rapid.IntRange(0, 3).Draw(t, "have") == 0 {
					filled[Place{i, j}] = true
				}
			}
		}
		plan := PlanRestore(c, func(p Place) bool { return filled[p] })
		got, places := map[Digest]bool{}, map[Place]bool{}
		chunks := 0
		for _, r := range plan.Ranges {
			end := r.Offset
			for _, ch := range r.Chunks {
				chunks++
				if got[ch.Digest] {
					t.Fatalf("chunk %s is read twice", ch.Digest)
				}
				got[ch.Digest] = true
				if ch.Offset < r.Offset || ch.Offset+ch.Stored > r.Offset+r.Length || ch.Offset < end-ch.Stored {
					t.Fatalf("chunk at %d+%d outside its range %d+%d", ch.Offset, ch.Stored, r.Offset, r.Length)
				}
				end = ch.Offset + ch.Stored
				for _, p := range ch.Places {
					row := c.Files[p.File].Chunks[p.Index]
					if places[p] || filled[p] || row.Digest != ch.Digest || c.Files[p.File].ChunkLen(p.Index) != ch.Length {
						t.Fatalf("place %v is filled wrongly or twice", p)
					}
					places[p] = true
				}
			}
			if r.Length > MaxPack {
				t.Fatalf("range of %d bytes", r.Length)
			}
		}
		if chunks != plan.Chunks {
			t.Fatalf("%d chunks, the plan says %d", chunks, plan.Chunks)
		}
		for i, f := range c.Files {
			for j, ch := range f.Chunks {
				p := Place{i, j}
				if needed := ch.Encoding != Hole && !filled[p]; needed != places[p] {
					t.Fatalf("place %v: needed %v, planned %v", p, needed, places[p])
				}
			}
		}
	})
}

func TestNeighbouringChunksAreOneReadAndDistantOnesAreNot(t *testing.T) {
	c := push(t, nil, 1, []Source{source("a", "abcdefghijk")})
	whole := PlanRestore(c, nil)
	if len(whole.Ranges) != 1 || whole.Bytes != c.Totals.Stored {
		t.Fatalf("a whole pack in %d ranges of %d bytes, want 1 of %d", len(whole.Ranges), whole.Bytes, c.Totals.Stored)
	}
	ends := PlanRestore(c, func(p Place) bool { return p.Index > 0 && p.Index < 8 })
	if len(ends.Ranges) != 2 {
		t.Fatalf("chunks megabytes apart in %d ranges, want 2", len(ends.Ranges))
	}
	if ends.Bytes >= whole.Bytes {
		t.Fatalf("a delta restore reads %d bytes, the whole %d", ends.Bytes, whole.Bytes)
	}
	if none := PlanRestore(c, func(Place) bool { return true }); len(none.Ranges) != 0 || none.Bytes != 0 {
		t.Fatalf("nothing is missing, %+v is read", none)
	}
}
