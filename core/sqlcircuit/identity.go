package sqlcircuit

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"os"
)

// headSize is how much of a file's beginning tells it apart from another one.
const headSize = 4096

// tracked is how far a file has been read, and which file that was.
type tracked struct {
	offset int64 // of the first byte that no record has taken
	length int64 // when last looked at
	head   []byte
	after  []byte // hash of the record that it must not begin with; nil = none, or it was compared

	file     *os.File // with follow: keeps a rotated file readable
	leaving  bool     // another file stands at the path; what is left of this one is being read
	renamed  bool     // it was seen to have another name than its path
	reported string   // what was last said about it, said once
	open     unfinished
}

func (k *tracked) close() {
	if k.file != nil {
		k.file.Close()
		k.file = nil
	}
}

// verdict compares what lies at a path with what was read there.
type verdict string

const (
	same      verdict = "same"
	shrunk    verdict = "it shrank"
	replaced  verdict = "it was replaced"
	rewritten verdict = "it was replaced by a rewritten copy of itself"
	rotated   verdict = "it was rotated"
)

// compare looks at the file's length and head. A file that only grew is the same.
func (k *tracked) compare(f *os.File) (verdict, error) {
	if k.length == 0 {
		return same, nil
	}
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if info.Size() < k.length {
		return shrunk, nil
	}
	head, err := headOf(f, k.length)
	if err != nil {
		return "", err
	}
	if !bytes.Equal(head, k.head) {
		return replaced, nil
	}
	return same, nil
}

// lookAt takes down what f is now.
func lookAt(name string, f *os.File) (*look, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file")
	}
	head, err := headOf(f, info.Size())
	if err != nil {
		return nil, err
	}
	return &look{name: name, length: info.Size(), head: head}, nil
}

// headOf hashes the first min(4096, length) bytes.
func headOf(f *os.File, length int64) ([]byte, error) {
	head := make([]byte, min(length, headSize))
	if _, err := f.ReadAt(head, 0); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, errShrunk
		}
		return nil, err
	}
	return hashOf(head), nil
}

func hashOf(data []byte) []byte {
	sum := sha256.Sum256(data)
	return sum[:]
}

// look is what is stored of k beside its offset. A file of length 0 has no head, so what it must not begin with is kept there.
func (k *tracked) look(name string) *look {
	head := k.head
	if k.length == 0 {
		head = k.after
	}
	if head == nil {
		head = hashOf(nil)
	}
	return &look{name: name, length: k.length, head: head}
}

// continued says that a last line without newline, which has been counted as a record, has got more text since. When only its newline
// was added, offset moves behind it.
func (k *tracked) continued(f *os.File, length int64) (bool, error) {
	if k.offset == 0 || k.offset >= length {
		return false, nil
	}
	around := make([]byte, min(3, length-k.offset+1))
	if _, err := f.ReadAt(around, k.offset-1); err != nil {
		return false, err
	}
	switch {
	case around[0] == '\n':
		return false, nil
	case around[1] == '\n':
		k.offset++
		return false, nil
	case bytes.HasPrefix(around[1:], []byte("\r\n")):
		k.offset += 2
		return false, nil
	}
	return true, nil
}
