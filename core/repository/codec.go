package repository

import "errors"

// EncodeFormat gives the bytes of FORMAT.json.
func EncodeFormat(f Format) ([]byte, error) { return nil, errors.ErrUnsupported }

// DecodeFormat reads FORMAT.json.
func DecodeFormat(b []byte) (Format, error) { return Format{}, errors.ErrUnsupported }

// EncodeEpoch gives the bytes of an epoch object.
func EncodeEpoch(e Epoch) ([]byte, error) { return nil, errors.ErrUnsupported }

// DecodeEpoch reads the epoch object stored as number.
func DecodeEpoch(number uint64, b []byte) (Epoch, error) { return Epoch{}, errors.ErrUnsupported }

// EncodeGC gives the bytes of a gc object.
func EncodeGC(g GC) ([]byte, error) { return nil, errors.ErrUnsupported }

// DecodeGC reads the gc object stored as number.
func DecodeGC(number uint64, b []byte) (GC, error) { return GC{}, errors.ErrUnsupported }

// EncodeCommit gives the bytes to store: the same commit gives the same bytes.
func EncodeCommit(c *Commit) ([]byte, error) { return nil, errors.ErrUnsupported }

// DecodeCommit reads the commit stored as number.
func DecodeCommit(number uint64, b []byte) (*Commit, error) { return nil, errors.ErrUnsupported }

// ReadmeText is the content of README.txt.
func ReadmeText(f Format) []byte { return nil }
