package syncer

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/cairnsync/cairn/core/repository"
	"github.com/cairnsync/cairn/sdk"
)

// What a probe stores: two contents of one length, so that a listing cannot tell them apart and a read must.
const (
	probeFirst  = "cairn probe: the first content of this key; it may be deleted\n"
	probeSecond = "cairn probe: another content of that key; it may be deleted!!\n"

	// The range that is read back: neither the beginning nor the end, and shorter than the whole.
	probeOffset, probeLength = 13, 9
)

// proveAbsent reads a key that nobody has ever used. A store that answers with "permission denied" cannot prove that anything is absent.
func (p *prober) proveAbsent(ctx context.Context) {
	_, err := p.read(ctx, &p.report.Read, p.keys[0], 0, -1)
	switch {
	case err == nil:
		p.report.Read.broken("get", p.keys[0], "a key that nobody has used holds an object")
	case isNotFound(err):
		p.absent = true
	case errors.Is(err, sdk.PermissionDenied):
		p.report.Read.bad(&absenceError{err})
	default:
		p.report.Read.bad(err)
	}
}

// absenceError explains a denied read of an object that does not exist.
type absenceError struct{ err error }

func (e *absenceError) Error() string {
	return "an object that does not exist is answered with permission denied, so nothing can be proven absent; many stores do so where the right to list is missing: " + e.err.Error()
}

func (e *absenceError) Unwrap() error { return e.err }

// create makes two objects: with IfAbsent or, when that is refused, without.
func (p *prober) create(ctx context.Context) {
	p.began = p.calls.now()
	err := p.put(ctx, &p.report.Write, p.keys[0], probeFirst)
	if errors.Is(err, sdk.Exists) && p.gone == nil {
		err = p.echoed(ctx)
	}
	if err != nil && p.gone == nil {
		p.report.Conditional.bad(err)
		p.plain = true
		err = p.put(ctx, &p.report.Write, p.keys[0], probeFirst)
	}
	p.ended = p.calls.now()
	if err == nil {
		p.stored = append(p.stored, p.keys[0])
		if err = p.put(ctx, &p.report.Write, p.keys[1], probeFirst); errors.Is(err, sdk.Exists) && p.gone == nil {
			err = nil // of the first key it was found out what Exists means here; should the object not be there, the listing tells
		}
	}
	if err != nil {
		p.report.Write.bad(err)
		return
	}
	p.stored = append(p.stored, p.keys[1])
	p.report.Write.good()
}

// echoed tells whether Exists, as the answer to the first create of a key, is the echo of an attempt whose own answer was lost. That is no lie.
func (p *prober) echoed(ctx context.Context) error {
	content, err := p.read(ctx, &p.report.Write, p.keys[0], 0, -1)
	switch {
	case isNotFound(err):
		return &sdk.Error{Code: sdk.Unsupported, Op: "put", Key: p.keys[0], Err: errors.New("the store answers that the key exists, and it does not")}
	case err == nil && content != probeFirst:
		return &sdk.Error{Code: sdk.Unsupported, Op: "put", Key: p.keys[0], Err: errors.New("the store answers that a key exists which nobody has used")}
	}
	return err
}

// createAgain is the question that fencing stands on: the key is taken, and must stay as it is.
func (p *prober) createAgain(ctx context.Context) {
	if p.plain || len(p.stored) == 0 {
		return
	}
	err := p.put(ctx, &p.report.Conditional, p.keys[0], probeSecond)
	switch {
	case err == nil:
		p.report.Conditional.broken("put", p.keys[0], "a second create of the same key was taken: the store ignores the condition")
	case errors.Is(err, sdk.Exists):
		p.refusedAgain = true // what is stored tells whether that was true
	default:
		p.report.Conditional.bad(err)
	}
}

// readBack reads the object, which tells what the second create did, and a range of it.
func (p *prober) readBack(ctx context.Context) {
	if len(p.stored) == 0 {
		return
	}
	read := &p.report.Read
	content, err := p.read(ctx, read, p.keys[0], 0, -1)
	switch {
	case isNotFound(err):
		read.broken("get", p.keys[0], "an object that was just written is not there")
		return
	case err != nil:
		read.bad(err)
		return
	case content != probeFirst && content != probeSecond:
		read.broken("get", p.keys[0], "%d bytes came back that are not those that were written", len(content))
		return
	case content == probeSecond && p.refusedAgain:
		p.report.Conditional.broken("put", p.keys[0], "a second create of the same key was answered with \"exists\", and yet its content is stored")
	case content == probeFirst && p.refusedAgain:
		p.report.Conditional.good()
	}
	part, err := p.read(ctx, read, p.keys[0], probeOffset, probeLength)
	switch {
	case err != nil:
		read.bad(err)
	case part != content[probeOffset:probeOffset+probeLength]:
		read.broken("get", p.keys[0], "a range of %d bytes from %d on came back as %d other ones", probeLength, probeOffset, len(part))
	case p.absent:
		read.good()
	}
}

// list looks for the objects that were just created, and for what probes have left that are over.
func (p *prober) list(ctx context.Context) {
	var found []sdk.Object
	folder := repository.ProbePrefix(p.prefix)
	right := &p.report.List
	err := p.ask(ctx, right, "list "+folder, listSize, func(ctx context.Context) error {
		found = found[:0]
		for obj, err := range listed(ctx, p.store, sdk.ListRequest{Prefix: folder}, maxListedProbes) {
			if err != nil {
				return err
			}
			found = append(found, obj)
		}
		return nil
	})
	if err != nil {
		right.bad(err)
		return
	}
	for _, key := range p.stored {
		i := slices.IndexFunc(found, func(obj sdk.Object) bool { return obj.Key == key })
		switch {
		case i < 0:
			right.broken("list", folder, "the listing does not show %s, which was just written", key)
		case found[i].Size != int64(len(probeFirst)):
			right.broken("list", folder, "the listing shows %s with %d bytes, it has %d", key, found[i].Size, len(probeFirst))
		case key == p.keys[0]:
			p.report.Skew = skewOf(p.began, p.ended, found[i].Modified)
			p.leftovers = p.over(found, found[i])
		}
	}
	if !slices.IsSortedFunc(found, func(a, b sdk.Object) int { return strings.Compare(a.Key, b.Key) }) {
		right.broken("list", folder, "the listing is out of order")
	}
	right.good()
}

// over are the objects of probes that have ended without deleting them: of this owner all but ours, of others those that are a day older
// than ours by the clock that gave both their times.
func (p *prober) over(found []sdk.Object, ours sdk.Object) (keys []string) {
	mine := repository.ProbeKey(p.prefix, p.owner, "")
	for _, obj := range found {
		old := !obj.Modified.IsZero() && ours.Modified.Sub(obj.Modified) > abandonedAfter
		if len(keys) < sdk.MaxDelete-len(p.keys) && !slices.Contains(p.keys[:], obj.Key) && (old || strings.HasPrefix(obj.Key, mine)) {
			keys = append(keys, obj.Key)
		}
	}
	return keys
}

// remove deletes what lies there of this probe and of those before it, and looks whether it is gone.
func (p *prober) remove(ctx context.Context) {
	if len(p.stored) == 0 {
		return
	}
	right := &p.report.Delete
	err := p.ask(ctx, right, "delete "+p.keys[0], 0, func(ctx context.Context) error {
		return p.store.Delete(ctx, append(slices.Clone(p.stored), p.leftovers...))
	})
	if err != nil {
		right.bad(err)
		return
	}
	_, err = p.read(ctx, right, p.keys[0], 0, -1)
	switch {
	case err == nil:
		right.broken("delete", p.keys[0], "the store answers that the object is deleted, and it is still there")
	case isNotFound(err), errors.Is(err, sdk.PermissionDenied) && !p.absent: // as good as such a store tells
		right.good()
	default:
		right.bad(err)
	}
}

// put creates an object of the probe.
func (p *prober) put(ctx context.Context, right *Right, key, content string) error {
	return p.ask(ctx, right, "create "+key, int64(len(content)), func(ctx context.Context) error {
		_, err := p.store.Put(ctx, sdk.PutRequest{Key: key, Body: sdk.BytesBody([]byte(content)), IfAbsent: !p.plain, Class: sdk.ClassMeta})
		return err
	})
}

// read reads a range of an object; length -1 = to the end.
func (p *prober) read(ctx context.Context, right *Right, key string, offset, length int64) (content string, err error) {
	err = p.ask(ctx, right, "read "+key, repository.MaxSmall, func(ctx context.Context) error {
		data, err := readRange(ctx, p.store, sdk.GetRequest{Key: key, Offset: offset, Length: length}, repository.MaxSmall)
		content = string(data)
		return err
	})
	return content, err
}
