package syncer

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"runtime/debug"

	"golang.org/x/sync/errgroup"

	"github.com/cairnsync/cairn/core/repository"
	"github.com/cairnsync/cairn/sdk"
)

// packer turns the new chunks of a plan into packs and uploads them: some chunks are read, checked and compressed at a time, one goroutine
// puts them in their order into packs, and the packs that are full travel. What waits for its turn waits in the spool.
type packer struct {
	spool  *Spool
	codecs []*chunkCodec // one for each chunk in the making
}

func newPacker(spool *Spool) (*packer, error) {
	k := &packer{spool: spool}
	for range builders() + 1 { // one is being stored
		codec, err := newChunkCodec()
		if err != nil {
			return nil, err
		}
		k.codecs = append(k.codecs, codec)
	}
	return k, nil
}

// upload stores every new chunk of plan in packs of at most repository.MaxPack and tells b where each lies. It returns when all uploads
// have ended; nil = all packs are stored.
func (k *packer) upload(ctx context.Context, r remote, p pinned, plan *repository.PushPlan, b *repository.Builder) error {
	if len(plan.New) == 0 {
		return nil
	}
	group, groupCtx := errgroup.WithContext(ctx)
	u := &upload{packer: k, remote: r, builder: b, group: group, left: plan.NewBytes}
	line := newChunkLine(p, plan, k.codecs)
	err := u.build(groupCtx, line, plan)
	line.close()
	u.discard()
	if failed := group.Wait(); failed != nil {
		return failed // when an upload failed, building was only cancelled
	}
	return err
}

// upload is one attempt's packs.
type upload struct {
	*packer
	remote

	builder *repository.Builder
	group   *errgroup.Group
	left    int64 // bytes of chunks not yet added

	open *packFile // the pack being filled, nil = none
}

func (u *upload) build(ctx context.Context, line *chunkLine, plan *repository.PushPlan) error {
	for i, c := range plan.New {
		encoding, stored, err := line.take(i)
		if err != nil {
			return err
		}
		pack, _, err := u.builder.Add(c.Digest, encoding, int64(len(stored)))
		if err != nil {
			return err
		}
		if err := u.write(ctx, pack, stored); err != nil {
			return err
		}
		u.left -= c.Length
	}
	return u.send(ctx)
}

// write appends a chunk to the pack it was assigned to; a new pack sends the one before on its way.
func (u *upload) write(ctx context.Context, pack int, stored []byte) error {
	if u.open == nil || u.open.index != pack {
		if err := u.send(ctx); err != nil {
			return err
		}
		file, err := u.spool.Create(ctx, min(repository.MaxPack, u.left))
		if err != nil {
			return err
		}
		u.open = &packFile{SpoolFile: file, index: pack, sha: sha256.New(), crc: crc32.New(crc32.MakeTable(crc32.Castagnoli))}
	}
	return u.open.append(stored)
}

// send closes the open pack and uploads it on a goroutine of the group, which owns its file from here.
func (u *upload) send(ctx context.Context) error {
	if u.open == nil {
		return nil
	}
	pack := u.open
	u.open = nil
	sums := pack.sums()
	id, err := u.builder.Seal(pack.index, sums.SHA256)
	if err != nil {
		return errors.Join(err, pack.Close())
	}
	pack.Shrink(pack.size)
	u.group.Go(func() error { return u.put(ctx, id, pack, sums) })
	return nil
}

// put uploads one pack. A name that exists is the echo of an answer that was lost: it carries epoch, number and content. That it is taken for one
// only when it was read back: a store that says so of what it does not have, or has otherwise, would leave a commit without its packs.
func (u *upload) put(ctx context.Context, id repository.PackID, pack *packFile, sums sdk.Sums) (err error) {
	defer func() { err = errors.Join(err, pack.Close()) }()
	defer recovered(&err)
	err = u.create(ctx, repository.PackKey(u.prefix, id), sdk.ClassBulk, sdk.FileBody(pack.File, 0, pack.size, sums))
	if errors.Is(err, sdk.Exists) {
		return u.stands(ctx, repository.PackKey(u.prefix, id), pack.size, sums.SHA256)
	}
	return err
}

// stands reads a pack that the store says exists, and compares it with what was to be stored.
func (u *upload) stands(ctx context.Context, key string, size int64, want [32]byte) error {
	err := u.calls.do(ctx, "read back "+key, size, func(ctx context.Context) error {
		got, err := u.store.Get(ctx, sdk.GetRequest{Key: key, Length: -1})
		if err != nil {
			return err
		}
		defer got.Body.Close() // nothing was written through it
		sum := sha256.New()
		n, err := io.Copy(sum, io.LimitReader(got.Body, size+1))
		if err == nil && (n != size || [32]byte(sum.Sum(nil)) != want) {
			err = &sdk.Error{
				Code: sdk.Corrupt, Op: "get", Key: key, Err: errors.New("the store says that the pack exists, and what it holds there is something else"),
				Hint: "no commit refers to that object: remove it, and the next push stores it anew",
			}
		}
		return err
	})
	if isNotFound(err) { // said of a pack, it is no answer to anybody above
		err = &sdk.Error{Op: "put", Key: key, Err: fmt.Errorf("the plugin breaks its contract: it says that the object exists, and does not find it: %v", err)}
	}
	return err
}

// discard drops a pack that will not be sent.
func (u *upload) discard() {
	if u.open != nil {
		_ = u.open.Close() // the job fails already, and the spool is emptied at the next start
		u.open = nil
	}
}

// packFile is a pack on its way into the spool: hashed as it is written, so that it is never read again before its upload.
type packFile struct {
	*SpoolFile

	index int
	size  int64
	sha   hash.Hash
	crc   hash.Hash32
}

func (f *packFile) append(stored []byte) error {
	if _, err := f.Write(stored); err != nil {
		return err
	}
	f.sha.Write(stored)
	f.crc.Write(stored)
	f.size += int64(len(stored))
	return nil
}

func (f *packFile) sums() sdk.Sums {
	return sdk.Sums{SHA256: [32]byte(f.sha.Sum(nil)), CRC32C: f.crc.Sum32()}
}

// body is the body of a commit: inline while it is small, else in a spool file, for only that can cross to a plugin. done releases it.
func (k *packer) body(ctx context.Context, text []byte) (body sdk.Body, done func(), err error) {
	if len(text) <= sdk.MaxInline {
		return sdk.BytesBody(text), func() {}, nil
	}
	file, err := k.spool.Create(ctx, int64(len(text)))
	if err != nil {
		return sdk.Body{}, nil, err
	}
	done = func() { _ = file.Close() } // the object is stored or not; the spool is emptied at the next start
	if _, err := file.Write(text); err != nil {
		done()
		return sdk.Body{}, nil, err
	}
	return sdk.FileBody(file.File, 0, int64(len(text)), sdk.SumsOf(text)), done, nil
}

// panicError is a panic that became its job's error. The stack goes to the log only.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("panic: %v", e.value) }

// recovered turns a panic into an error. It is deferred.
func recovered(err *error) {
	if p := recover(); p != nil {
		*err = &panicError{value: p, stack: debug.Stack()}
	}
}
