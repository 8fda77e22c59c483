package rpc

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/cairnsync/cairn/sdk"
	"github.com/cairnsync/cairn/sdk/internal/pb"
)

// nonceSize is long enough that nobody guesses it, and short enough to be read without thought.
const nonceSize = 32

// root is the host's side of a directory that the plugin is to prove it sees.
type root struct {
	id, path string
	nonce    []byte
	file     string
}

// announceRoot puts a fresh nonce into dir. The caller withdraws it once the plugin has answered.
func announceRoot(id, dir string) (root, error) {
	path, err := filepath.Abs(dir)
	if err != nil {
		return root{}, err
	}
	nonce := make([]byte, nonceSize)
	if _, err := rand.Read(nonce); err != nil {
		return root{}, err
	}
	f, err := os.CreateTemp(path, ".nonce-*")
	if err != nil {
		return root{}, err
	}
	_, err = f.Write(nonce)
	if err = errors.Join(err, f.Close()); err != nil {
		return root{}, errors.Join(err, os.Remove(f.Name()))
	}
	return root{id: id, path: path, nonce: nonce, file: f.Name()}, nil
}

func (r root) withdraw() error { return os.Remove(r.file) }

func (r root) provenBy(proofs []*pb.Proof) bool {
	for _, proof := range proofs {
		if proof.GetRoot() == r.id && bytes.Equal(proof.GetNonce(), r.nonce) {
			return true
		}
	}
	return false
}

// roots are the plugin's proven directories, by id. Files are opened below them only, never through a link.
type roots struct {
	mu     sync.Mutex
	proven map[string]*os.Root
}

// prove opens an announced directory and reads its nonce. A root that cannot be read is simply not proven: the host decides what that means.
func (r *roots) prove(announced *pb.Root) (*pb.Proof, error) {
	dir, err := os.OpenRoot(announced.GetPath())
	if err != nil {
		return nil, err
	}
	nonce, err := readNonce(dir, announced.GetNonceFile())
	if err != nil {
		_ = dir.Close() // nothing was written through it
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.proven == nil {
		r.proven = map[string]*os.Root{}
	}
	if old := r.proven[announced.GetId()]; old != nil {
		_ = old.Close() // nothing was written through it
	}
	r.proven[announced.GetId()] = dir
	return &pb.Proof{Root: announced.GetId(), Nonce: nonce}, nil
}

func readNonce(dir *os.Root, name string) ([]byte, error) {
	f, err := openRegular(dir, name, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, 2*nonceSize))
}

// open opens the file of a range, for reading or for writing.
func (r *roots) open(at *pb.FileRange, flag int) (*os.File, error) {
	r.mu.Lock()
	dir := r.proven[at.GetRoot()]
	r.mu.Unlock()
	switch {
	case dir == nil:
		return nil, &sdk.Error{Code: sdk.Unsupported, Err: fmt.Errorf("file range in root %q, which is not proven", at.GetRoot())}
	case at.GetOffset() < 0:
		return nil, &sdk.Error{Code: sdk.Unsupported, Err: fmt.Errorf("file range at offset %d", at.GetOffset())}
	}
	f, err := openRegular(dir, at.GetPath(), flag)
	if err != nil {
		return nil, fmt.Errorf("open spool file: %w", err)
	}
	return f, nil
}

func (r *roots) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, dir := range r.proven {
		_ = dir.Close() // nothing was written through it
	}
	r.proven = nil
}

// openRegular opens a regular file below dir that is not reached through a link. O_NONBLOCK keeps a FIFO from holding the call; the
// second look makes sure that what was opened is what was looked at.
func openRegular(dir *os.Root, name string, flag int) (*os.File, error) {
	seen, err := dir.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !seen.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", name)
	}
	f, err := dir.OpenFile(name, flag|syscall.O_NONBLOCK|syscall.O_NOFOLLOW|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	opened, err := f.Stat()
	if err == nil && !os.SameFile(seen, opened) {
		err = fmt.Errorf("%s was replaced while it was opened", name)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// section is the range of f as a source. A file shorter than the range is Corrupt before a byte is read.
func section(f *os.File, offset, size int64) (*io.SectionReader, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if have := info.Size() - offset; have < size {
		return nil, &sdk.Error{Code: sdk.Corrupt, Err: fmt.Errorf("the spool file ends after %d of %d bytes", max(have, 0), size)}
	}
	return io.NewSectionReader(f, offset, size), nil
}

// announcement is the root as Configure sends it.
func (r root) announcement() *pb.Root {
	return &pb.Root{Id: r.id, Path: r.path, NonceFile: filepath.Base(r.file)}
}

// locate names a range of f for the plugin. The file must lie below the root, by the name it was opened with.
func (r *root) locate(f *os.File, offset int64) (*pb.FileRange, error) {
	if r == nil {
		return nil, &sdk.Error{Code: sdk.Unsupported, Err: errors.New("the plugin has no spool directory")}
	}
	path, err := filepath.Abs(f.Name())
	if err == nil {
		path, err = filepath.Rel(r.path, path)
	}
	if err != nil || !filepath.IsLocal(path) {
		return nil, &sdk.Error{Code: sdk.Unsupported, Err: fmt.Errorf("%s is not in the spool directory %s", f.Name(), r.path)}
	}
	return &pb.FileRange{Root: r.id, Path: filepath.ToSlash(path), Offset: offset}, nil
}
