package sqlcircuit

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"os"
)

// beginning is how much of two files is compared to find their first records.
const beginning = 64 << 10

// judge tells what the file is that lies where k was read. Another file there is a rotation when the one that was read is still there under
// another name and the new one does not begin with the same record. Otherwise somebody has put a rewritten file in its place (an editor,
// sed -i, an export that is made again), whose records would count twice.
//
// While the old file has a name a writer may still be writing to it, so it is read for one more look before anything is decided: rotated.
func (k *tracked) judge(f *os.File, format Format) (verdict, error) {
	v, err := k.compare(f)
	if err != nil || k.file == nil || sameFile(k.file, f) {
		return v, err
	}
	if v == same {
		held, err := k.heldBy(f)
		if err != nil {
			return "", err
		}
		if !held {
			v = rewritten
		}
	}
	switch named := k.leaving || k.renamed || linked(k.file); {
	case !named, k.leaving && v == same:
		return v, nil
	case !k.leaving:
		return rotated, nil
	}
	alike, err := beginAlike(k.file, f, format)
	switch {
	case err != nil:
		return "", err
	case alike:
		return rewritten, nil
	}
	return rotated, nil
}

// heldBy says that another file, which begins alike, holds what lies in front of the position and all that k.file has got behind it. A copy that
// only grew is as good as the original; one in which something in between has another length is not, nor is one that lacks the latest rows.
func (k *tracked) heldBy(f *os.File) (bool, error) {
	info, err := k.file.Stat()
	if err != nil {
		return false, err
	}
	was, is := make([]byte, beginning), make([]byte, beginning)
	for at := max(0, k.offset-headSize); at < info.Size(); at += beginning {
		n := min(beginning, info.Size()-at)
		_, errWas := k.file.ReadAt(was[:n], at)
		_, errIs := f.ReadAt(is[:n], at)
		switch err := cmp.Or(errWas, errIs); {
		case errors.Is(err, io.EOF):
			return false, nil
		case err != nil:
			return false, err
		case !bytes.Equal(was[:n], is[:n]):
			return false, nil
		}
	}
	return true, nil
}

// beginAlike says that a file begins with the record that another one began with; of CSV the header is none.
func beginAlike(was, is *os.File, format Format) (bool, error) {
	first, _, err := firstRecord(was, format)
	if err != nil || len(first) == 0 {
		return false, err
	}
	other, whole, err := firstRecord(is, format)
	return whole && bytes.Equal(first, other), err
}

// firstRecord is not whole while its end is still to be written. Of a very long one it is what lies in the file's beginning.
func firstRecord(f *os.File, format Format) (record []byte, whole bool, err error) {
	data := make([]byte, beginning)
	n, err := f.ReadAt(data, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, false, err
	}
	data = data[:n]
	cut := cutLine
	if format == CSV {
		cut = cutCSV
		header, _ := cut(data)
		if header < 0 {
			return nil, n == beginning, nil
		}
		data = data[header:]
	}
	end, _ := cut(data)
	if end >= 0 {
		data = data[:end]
	}
	return trimLineEnd(data), end >= 0 || n == beginning, nil
}

// repeats says that k, of which nothing was taken yet, begins with the record that the file began with whose place it took. That is known once
// the record is whole, which may be long after the rotation; with final, it is as it stands.
func (k *tracked) repeats(format Format, final bool) (bool, error) {
	if k.after == nil {
		return false, nil
	}
	first, whole, err := firstRecord(k.file, format)
	if err != nil || !whole && !final {
		return false, err
	}
	if len(first) > 0 && bytes.Equal(hashOf(first), k.after) {
		return true, nil
	}
	k.after = nil
	return false, nil
}

// leave finishes a file that was rotated away while it was followed: what is left of it is read through the descriptor that was kept, and
// once more a look later, for a writer that had not reopened yet. Then its last line counts as it stands, and the name begins anew.
func (s *fileSource) leave(ctx context.Context, name string, k *tracked) error {
	if err := s.read(ctx, name, k, k.leaving); err != nil {
		return err
	}
	if !k.leaving {
		k.leaving = true
		return nil
	}
	s.log.Warn("input file was rotated", "input", s.in.cfg.Name, "path", s.in.cfg.File.place(name), "offset", k.offset, "length", k.length)
	after, err := k.first(k.file, s.in.cfg.File.Format)
	if err != nil {
		return err
	}
	k.close()
	s.rotations[name]++
	if err := s.begin(ctx, name, after); err != nil {
		return err
	}
	return s.visit(ctx, name)
}

// first is what the file that takes k's place must not begin with: the hash of the first record of k's file, f. Where it has none, that of the
// file before it.
func (k *tracked) first(f *os.File, format Format) ([]byte, error) {
	first, _, err := firstRecord(f, format)
	if err == nil && len(first) == 0 && k.after != nil {
		return k.after, nil
	}
	return hashOf(first), err
}

// begin makes a file known of which nothing was taken. One that took another's place is stored so, with what it must not begin with.
func (s *fileSource) begin(ctx context.Context, name string, after []byte) error {
	k := &tracked{after: after}
	s.known[name] = k
	if after != nil && !s.in.put(ctx, []item{{mark: true, look: k.look(name)}}) {
		return errNotTaken
	}
	return nil
}
