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

// chunkCodec compresses chunks where that pays. It is used by one goroutine.
type chunkCodec struct {
	enc *zstd.Encoder
	dec *zstd.Decoder
	out []byte // reused; valid until the next encode
	got []byte // reused

	file int  // the file that was probed last
	pays bool // and whether it paid
	any  bool // a file was probed
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

// reset forgets what was probed: file numbers belong to one plan.
func (c *chunkCodec) reset() { c.any = false }

// encode gives the bytes to store for a chunk of the file. What was compressed has been decompressed again and compared: a compressor's
// rare fault must not be found at the restore. The result is valid until the next call.
func (c *chunkCodec) encode(file int, raw []byte) (repository.Encoding, []byte, error) {
	probe := !c.any || c.file != file
	if !probe && !c.pays {
		return repository.Raw, raw, nil
	}
	c.out = c.enc.EncodeAll(raw, c.out[:0])
	if probe {
		c.any, c.file = true, file
		c.pays = len(c.out) <= len(raw)-len(raw)/probeGain
	}
	if len(c.out) >= len(raw) {
		return repository.Raw, raw, nil
	}
	if err := c.compare(raw); err != nil {
		return "", nil, err
	}
	return repository.Zstd, c.out, nil
}

// compare decompresses what encode made of raw.
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
