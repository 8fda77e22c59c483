package syncer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sync/errgroup"

	"github.com/cairnsync/cairn/core/repository"
	"github.com/cairnsync/cairn/sdk"
)

// fetchesInFlight bounds the ranges that one pull reads at once. Each holds a range in the spool and two chunks in memory.
const fetchesInFlight = DefaultConcurrency

// fetch reads what the tree lacks.
func (f *filling) fetch(ctx context.Context, t *tree) error {
	plan := repository.PlanRestore(f.commit, t.has)
	f.needs = needsOf(f.commit, plan, t.has)
	m := &meter{report: f.progress, now: Progress{Commit: f.commit.Number, Total: plan.Bytes}}
	m.add(0)
	f.reader.log.Debug("restore planned", "commit", f.commit.Number, "ranges", len(plan.Ranges), "bytes", plan.Bytes, "chunks", plan.Chunks)
	var next atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	for range min(fetchesInFlight, len(plan.Ranges)) {
		group.Go(func() error {
			dec, err := newChunkDecoder()
			if err != nil {
				return err
			}
			defer dec.close()
			w := t.writer()
			for i := next.Add(1) - 1; i < int64(len(plan.Ranges)); i = next.Add(1) - 1 {
				if err := f.fetchRange(ctx, plan.Ranges[i], dec, w); err != nil {
					return errors.Join(err, w.close())
				}
				m.add(plan.Ranges[i].Length)
			}
			return w.close()
		})
	}
	return group.Wait()
}

// fetchRange brings the chunks of one range into the tree.
func (f *filling) fetchRange(ctx context.Context, rng repository.Range, dec *chunkDecoder, w *treeWriter) error {
	fetch := rangeFetch{reader: f.reader, spool: f.spool}
	bad, err := fetch.chunks(ctx, rng, dec, func(ch repository.ChunkRead, raw []byte) error {
		for _, p := range ch.Places {
			if err := w.write(p, raw); err != nil {
				return err
			}
		}
		return nil
	})
	switch {
	case isNotFound(err):
		return &goneError{commit: f.commit.Number, pack: rng.Pack, err: err}
	case err == nil && bad != nil:
		return f.damaged(rng, *bad)
	}
	return err
}

// damaged names a chunk that stays wrong, and a file that needs it.
func (f *filling) damaged(rng repository.Range, bad damage) error {
	at := bad.chunk.Places[0]
	return f.reader.corrupt("pack %s, offset %d: chunk %s of file %q is damaged (%s) and was read %d times; another commit may be whole",
		rng.Pack, bad.chunk.Offset, bad.chunk.Digest, f.commit.Files[at.File].Path, bad.reason, corruptAttempts)
}

// rangeFetch reads ranges of packs through the spool.
type rangeFetch struct {
	reader *Reader
	spool  *Spool
}

// damage is a chunk that is not what the commit says.
type damage struct {
	chunk  repository.ChunkRead
	reason string
}

// chunks reads one range and hands on each chunk of it that is right. Bytes that are not those of the commit are read again: damage on the
// way heals, damage at rest does not, and its first chunk is the answer. A pack that is proven absent is sdk.NotFound.
func (f rangeFetch) chunks(
	ctx context.Context, rng repository.Range, dec *chunkDecoder, use func(ch repository.ChunkRead, raw []byte) error,
) (*damage, error) {
	file, err := f.spool.Create(ctx, rng.Length)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // the spool is emptied at the next start
	for attempt := 1; ; attempt++ {
		if err := f.into(ctx, rng, file); err != nil {
			return nil, err
		}
		bad, err := unpack(file, rng, dec, use)
		if err != nil || bad == nil || attempt == corruptAttempts {
			return bad, err
		}
		f.reader.log.Warn("damaged chunk, reading again", "pack", rng.Pack, "chunk", bad.chunk.Digest, "reason", bad.reason)
	}
}

// into is one read of a range, repeated as the retry law says.
func (f rangeFetch) into(ctx context.Context, rng repository.Range, file *SpoolFile) error {
	req := sdk.GetRequest{Key: repository.PackKey(f.reader.prefix, rng.Pack), Offset: rng.Offset, Length: rng.Length}
	return f.reader.calls.do(ctx, "read "+req.Key, rng.Length, func(ctx context.Context) error {
		n, err := f.reader.store.Fetch(ctx, req, file.File, 0)
		if err == nil && n != rng.Length {
			err = &sdk.Error{Code: sdk.Corrupt, Op: "get", Key: req.Key, Err: fmt.Errorf("%d bytes at offset %d, want %d", n, rng.Offset, rng.Length)}
		}
		return err
	})
}

// unpack checks each chunk of a range and hands it on. err is about this machine, bad about the bytes.
func unpack(
	src io.ReaderAt, rng repository.Range, dec *chunkDecoder, use func(ch repository.ChunkRead, raw []byte) error,
) (bad *damage, err error) {
	for _, ch := range rng.Chunks {
		stored := dec.stored[:ch.Stored]
		n, err := src.ReadAt(stored, ch.Offset-rng.Offset)
		if errors.Is(err, io.EOF) { // the plugin, which was believed to have written all, can write there until its process ends
			return &damage{chunk: ch, reason: fmt.Sprintf("the spool file ends after %d of its %d bytes, though the plugin said that all of the range is there", n, len(stored))}, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read spool file: %w", err)
		}
		raw, reason := dec.decode(ch, stored)
		if reason != "" {
			return &damage{chunk: ch, reason: reason}, nil
		}
		if err := use(ch, raw); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// chunkDecoder gives a chunk's bytes back. It is used by one goroutine.
type chunkDecoder struct {
	zstd   *zstd.Decoder
	stored []byte // for the caller to read into: no stored chunk is longer
	out    []byte // reused; valid until the next decode
}

func newChunkDecoder() (*chunkDecoder, error) {
	d, err := zstd.NewReader(nil,
		zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxMemory(repository.ChunkSize), zstd.WithDecoderMaxWindow(repository.ZstdWindow))
	if err != nil {
		return nil, fmt.Errorf("zstd decoder: %w", err)
	}
	return &chunkDecoder{zstd: d, stored: make([]byte, repository.ChunkSize)}, nil
}

func (d *chunkDecoder) close() { d.zstd.Close() }

// decode checks what was stored for a chunk. A reason is given when it is not the chunk.
func (d *chunkDecoder) decode(ch repository.ChunkRead, stored []byte) (raw []byte, reason string) {
	raw = stored
	if ch.Encoding == repository.Zstd {
		var err error
		if d.out, err = d.zstd.DecodeAll(stored, d.out[:0]); err != nil {
			return nil, "zstd: " + err.Error()
		}
		raw = d.out
	}
	if int64(len(raw)) != ch.Length {
		return nil, fmt.Sprintf("%d bytes, want %d", len(raw), ch.Length)
	}
	if got := repository.Sum(raw); got != ch.Digest {
		return nil, "its SHA-256 is " + got.String()
	}
	return raw, ""
}
