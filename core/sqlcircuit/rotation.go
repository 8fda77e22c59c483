package sqlcircuit

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"os"
)

// beginning is how much of two files is compared to find their first records.
const beginning = 64 << 10

// judge tells what the file is that lies where k was read. Another file there is a rotation when the one that was read is still there under
// another name and the new one does not begin with the same record. Otherwise somebody has put a rewritten file in its place (an editor,
// sed -i, an export that is made again), whose records would count twice.
func (k *tracked) judge(f *os.File, format Format) (verdict, error) {
	v, err := k.compare(f)
	if err != nil || k.file == nil || sameFile(k.file, f) {
		return v, err
	}
	switch {
	case v == same:
		return k.compareTail(f)
	case k.leaving:
		return rotated, nil // as was decided before, while its old name was known
	case !k.renamed && !linked(k.file):
		return v, nil
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

// compareTail compares what lies in front of the position, in another file that begins alike. A copy that only grew is as good as the
// original; one in which something in between has another length is not.
func (k *tracked) compareTail(f *os.File) (verdict, error) {
	size := min(k.offset, headSize)
	was, is := make([]byte, size), make([]byte, size)
	if _, err := k.file.ReadAt(was, k.offset-size); err != nil {
		return "", err
	}
	if _, err := f.ReadAt(is, k.offset-size); err != nil {
		return "", err
	}
	if !bytes.Equal(was, is) {
		return rewritten, nil
	}
	return same, nil
}

// beginAlike says that two files begin with the same record; of CSV the header is none.
func beginAlike(a, b *os.File, format Format) (bool, error) {
	first, err := firstRecord(a, format)
	if err != nil || len(first) == 0 {
		return false, err
	}
	other, err := firstRecord(b, format)
	return bytes.Equal(first, other), err
}

// firstRecord is empty when there is none yet. Of a very long one it is what lies in the file's beginning.
func firstRecord(f *os.File, format Format) ([]byte, error) {
	data := make([]byte, beginning)
	n, err := f.ReadAt(data, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	data = data[:n]
	cut := cutLine
	if format == CSV {
		cut = cutCSV
		header, _ := cut(data)
		if header < 0 {
			return nil, nil
		}
		data = data[header:]
	}
	if end, _ := cut(data); end >= 0 {
		data = data[:end]
	}
	return trimLineEnd(data), nil
}

// leave finishes a file that was rotated away while it was followed: what is left of it is read through the descriptor that was kept, and
// once more a look later, for a writer that had not reopened yet. Then its last line counts as it stands, and the name begins anew.
func (s *fileSource) leave(ctx context.Context, name string, k *tracked) error {
	s.reportOnce(s.in.cfg.File.place(name), k, "input file was rotated")
	if err := s.read(ctx, name, k, k.leaving); err != nil {
		return err
	}
	if !k.leaving {
		k.leaving = true
		return nil
	}
	k.close()
	s.known[name] = &tracked{}
	s.rotations[name]++
	empty := sha256.Sum256(nil)
	if !s.in.put(ctx, []item{{mark: true, look: &look{name: name, head: empty[:]}}}) {
		return errNotTaken
	}
	return s.visit(ctx, name)
}
