package syncer

import (
	"bytes"
	"fmt"

	"github.com/klauspost/compress/zstd"

	"github.com/cairnsync/cairn/core/repository"
)

// probeGain is what compressing the first new chunk of a file must save, as a fraction 1/probeGain, for the others to be tried: decoding
// costs a restore more than reading a few per cent of bytes.
const probeGain = 16

// probe decides, file by file, whether chunks are compressed. It is asked in the order of the plan, so that the same checkpoint makes the
// same packs however many chunks are prepared at a time. Its zero value is for one plan: file numbers belong to that.
type probe struct {
	any  bool // a file was probed
	file int  // the file that was probed last
	pays bool // and whether it paid
}

// skips says that compressing a chunk of the file is known to be in vain.
func (p *probe) skips(file int) bool { return p.any && p.file == file && !p.pays }

// choose gives what to store of a chunk: packed, which is nil where compressing was not tried or did not make it shorter, or the chunk
// as it is. The first chunk of a file is its probe.
func (p *probe) choose(file int, raw, packed []byte) (repository.Encoding, []byte) {
	if !p.any || p.file != file {
		p.any, p.file = true, file
		p.pays = packed != nil && len(packed) <= len(raw)-len(raw)/probeGain
	} else if !p.pays {
		return repository.Raw, raw
	}
	if packed == nil {
		return repository.Raw, raw
	}
	return repository.Zstd, packed
}

// chunkCodec compresses chunks. It is used by one goroutine at a time.
type chunkCodec struct {
	enc *zstd.Encoder
	dec *zstd.Decoder
	out []byte // reused; valid until the next compress
	got []byte // reused
}

func newChunkCodec() (*chunkCodec, error) {
	enc, err := zstd.NewWriter(nil,
		zstd.WithEncoderLevel(zstd.EncoderLevelFromZstd(repository.ChunkZstdLevel)), zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(repository.ChunkSize), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return nil, fmt.Errorf("zstd encoder: %w", err)
	}
	dec, err := zstd.NewReader(nil,
		zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(repository.ChunkSize), zstd.WithDecoderLowmem(true))
	if err != nil {
		return nil, fmt.Errorf("zstd decoder: %w", err)
	}
	return &chunkCodec{enc: enc, dec: dec}, nil
}

// compress gives raw compressed, nil when that is no shorter. What was compressed has been decompressed again and compared: a compressor's rare
// fault must not be found at the restore. The result is valid until the next call.
func (c *chunkCodec) compress(raw []byte) ([]byte, error) {
	c.out = c.enc.EncodeAll(raw, c.out[:0])
	if len(c.out) >= len(raw) {
		return nil, nil
	}
	if err := c.compare(raw); err != nil {
		return nil, err
	}
	return c.out, nil
}

// compare decompresses what compress made of raw.
func (c *chunkCodec) compare(raw []byte) (err error) {
	c.got, err = c.dec.DecodeAll(c.out, c.got[:0])
	if err != nil {
		return fmt.Errorf("compressed chunk does not decompress: %w", err)
	}
	if !bytes.Equal(c.got, raw) {
		return fmt.Errorf("compressed chunk decompresses to other bytes")
	}
	return nil
}
