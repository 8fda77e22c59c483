package syncer

import (
	"runtime"

	"github.com/cairnsync/cairn/core/repository"
)

// maxBuilders bounds how many chunks of a push are read, checked and compressed at the same time. Half of the processors are left to the
// circuit, whose steps a push must not slow down.
const maxBuilders = 4

func builders() int { return max(1, min(maxBuilders, runtime.GOMAXPROCS(0)/2)) }

// chunkLine prepares the new chunks of a plan, some ahead of the one that is asked for, and gives them in the plan's order. It belongs to one
// goroutine; those that it starts have ended when close returns.
type chunkLine struct {
	plan    *repository.PushPlan
	places  []*chunkPlace
	started int // chunks of the plan
	probe   probe
}

// chunkPlace is where one chunk at a time is prepared.
type chunkPlace struct {
	files chunkFiles
	codec *chunkCodec
	done  chan struct{} // closed when the chunk is ready; nil = nothing was ever begun here

	raw, packed []byte
	err         error
}

// newChunkLine has one place for each codec: while the chunk of one is stored, those of the others are prepared.
func newChunkLine(p pinned, plan *repository.PushPlan, codecs []*chunkCodec) *chunkLine {
	l := &chunkLine{plan: plan}
	for _, codec := range codecs {
		l.places = append(l.places, &chunkPlace{files: chunkFiles{pinned: p, files: p.Manifest().Files}, codec: codec})
	}
	return l
}

// take gives chunk i, counted up from 0, as it is to be stored. What it gives is valid until the next call.
func (l *chunkLine) take(i int) (repository.Encoding, []byte, error) {
	for ; l.started < len(l.plan.New) && l.started < i+len(l.places); l.started++ {
		c := l.plan.New[l.started]
		place := l.places[l.started%len(l.places)]
		place.done = make(chan struct{})
		go place.prepare(l.plan.Files[c.File].Path, c, !l.probe.skips(c.File))
	}
	place := l.places[i%len(l.places)]
	<-place.done
	if place.err != nil {
		return "", nil, place.err
	}
	encoding, stored := l.probe.choose(l.plan.New[i].File, place.raw, place.packed)
	return encoding, stored, nil
}

// prepare reads a chunk, checks it and, if that may pay, compresses it.
func (p *chunkPlace) prepare(path string, c repository.NewChunk, compress bool) {
	defer close(p.done)
	defer recovered(&p.err)
	p.packed = nil
	if p.raw, p.err = p.files.read(path, c); p.err == nil && compress {
		p.packed, p.err = p.codec.compress(p.raw)
	}
}

// close waits for what is being prepared and closes the files.
func (l *chunkLine) close() {
	for _, place := range l.places {
		if place.done != nil {
			<-place.done
		}
		place.files.close()
	}
}
