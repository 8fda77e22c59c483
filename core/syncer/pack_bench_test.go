package syncer

import (
	"crypto/sha256"
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// BenchmarkTheChunksOfAPush prepares 32 MiB that compress well, and hashes what would be stored as a pack is.
func BenchmarkTheChunksOfAPush(b *testing.B) {
	var text strings.Builder
	for i := 0; text.Len() < 32<<20; i++ {
		text.WriteString(strconv.Itoa(i * 7919 % 1_000_003))
	}
	files := map[string][]byte{"text": []byte(text.String())}
	for _, places := range []int{1, 2, 3, maxBuilders + 1} {
		b.Run(fmt.Sprintf("places=%d", places), func(b *testing.B) {
			first, plan := lineOf(b, files, places)
			var codecs []*chunkCodec
			for _, place := range first.places {
				codecs = append(codecs, place.codec)
			}
			b.SetBytes(int64(text.Len()))
			for b.Loop() {
				line := newChunkLine(first.places[0].files.pinned, plan, codecs)
				pack := sha256.New()
				for i := range plan.New {
					_, stored, err := line.take(i)
					if err != nil {
						b.Fatal(err)
					}
					pack.Write(stored)
				}
				line.close()
			}
		})
	}
}
