package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/cairnsync/cairn/sdk"
)

const (
	fileMode = 0o600
	dirMode  = 0o700

	// tempPrefix begins the name of a file that is being written. No key holds a "~", so it can be no object's.
	tempPrefix = ".cairn~"

	// nfsPrefix begins the names under which NFS clients keep removed files that somebody has open.
	nfsPrefix = ".nfs"

	// copyBuffer is between the looks at ctx while an object is copied.
	copyBuffer = 256 << 10

	// dirAttempts bounds the race of a Put, which makes its directory, with Deletes that remove empty ones.
	dirAttempts = 16
)

// target is a directory. It opens the directory anew for each call: a handle kept open would go on writing below a mount point after
// the disk is mounted over it, and would keep a disk from being unmounted.
type target struct {
	path    string
	birth   birth
	now     func() time.Time
	dirs    durableDirs
	sync    func(*os.File) error // fsync; tests count it and make it fail
	sweeper sweeper
}

var (
	_ sdk.Target = (*target)(nil)
	_ io.Closer  = (*target)(nil)
)

// newTarget makes a target that sweeps until ctx ends or it is closed.
func newTarget(ctx context.Context, path string, now func() time.Time) *target {
	return &target{path: filepath.Clean(path), now: now, sync: (*os.File).Sync, sweeper: newSweeper(ctx)}
}

// Close ends the sweep. Calls may still be made.
func (t *target) Close() error {
	t.sweeper.end()
	return nil
}

// Put writes a temporary file beside the final name and gives it that name when its bytes are on disk: by link(2), which fails when
// the name exists, or by rename(2), which replaces. Then the name is made durable too.
func (t *target) Put(ctx context.Context, req sdk.PutRequest) (sdk.PutResult, error) {
	return sdk.PutResult{}, t.call(ctx, "put", req.Key, t.openToPut, func(root *os.Root) error { return t.put(ctx, root, req) })
}

func (t *target) put(ctx context.Context, root *os.Root, req sdk.PutRequest) error {
	if err := t.lookBefore(root, req); err != nil {
		return err
	}
	temp, err := t.createTemp(root, path.Dir(req.Key))
	if err != nil {
		return err
	}
	name := path.Join(path.Dir(req.Key), path.Base(temp.Name()))
	own, err := t.fill(ctx, temp, req.Body)
	if err == nil {
		err = t.commit(root, own, name, req)
	}
	_ = root.Remove(name) // a rename has taken this name away, a link has not; what stays is swept later
	if err != nil {
		return err
	}
	return t.syncDir(root, path.Dir(req.Key))
}

func (t *target) commit(root *os.Root, own fs.FileInfo, name string, req sdk.PutRequest) error {
	if req.IfAbsent {
		return t.link(root, own, name, req.Key)
	}
	return rename(root, name, req.Key)
}

// lookBefore spares the copy when the answer is known.
func (t *target) lookBefore(root *os.Root, req sdk.PutRequest) error {
	if strings.HasPrefix(req.Key, nfsPrefix) || strings.Contains(req.Key, "/"+nfsPrefix) {
		return errNFS // List would not show it
	}
	info, err := root.Lstat(req.Key)
	switch {
	case errors.Is(err, syscall.ENOTDIR):
		return errClash
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return t.explain(root, req.Key, err)
	}
	return t.taken(root, req, info)
}

// taken answers a Put whose key exists. Exists is told only when the other's object is durable: the one who put it may have died
// before it was.
func (t *target) taken(root *os.Root, req sdk.PutRequest, info fs.FileInfo) error {
	switch {
	case info.IsDir():
		return errClash
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s: %w", req.Key, errLink)
	case !req.IfAbsent:
		return nil
	}
	if err := t.syncDir(root, path.Dir(req.Key)); err != nil {
		return err
	}
	return sdk.Exists
}

// createTemp makes the directory dir and a file in it. Once the file is there, nobody removes the directory.
func (t *target) createTemp(root *os.Root, dir string) (*os.File, error) {
	for attempt := 1; ; attempt++ {
		err := t.makeDir(root, dir)
		if err == nil {
			var f *os.File
			f, err = root.OpenFile(path.Join(dir, tempPrefix+rand.Text()), os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
			if err == nil {
				return f, nil
			}
		}
		if !errors.Is(err, fs.ErrNotExist) || attempt == dirAttempts {
			return nil, err
		}
	}
}

// fill copies the body, makes it durable and closes the file: an NFS client keeps a removed file that is still open under another name. It
// returns what tells the file from others.
func (t *target) fill(ctx context.Context, f *os.File, body sdk.Body) (fs.FileInfo, error) {
	err := t.copy(ctx, f, body)
	own, statErr := f.Stat()
	closeErr := f.Close() // over NFS it tells of writes that failed
	return own, cmp.Or(err, statErr, closeErr)
}

// copy leaves a durable file behind. The body's reader withholds its end unless size and digest are right.
func (t *target) copy(ctx context.Context, f *os.File, body sdk.Body) error {
	src := &readerWithContext{ctx: ctx, Reader: body.Reader()}
	n, err := io.CopyBuffer(struct{ io.Writer }{f}, src, make([]byte, min(copyBuffer, max(body.Size(), 1))))
	if err != nil {
		return err
	}
	if n != body.Size() {
		return fmt.Errorf("%d of %d bytes copied: %w", n, body.Size(), sdk.Corrupt)
	}
	if err := t.sync(f); err != nil {
		return err
	}
	return ctx.Err()
}

// link gives the finished file, own, its name unless the name exists.
func (t *target) link(root *os.Root, own fs.FileInfo, name, key string) error {
	err := root.Link(name, key)
	if !errors.Is(err, fs.ErrExist) {
		return linkError(err)
	}
	info, statErr := root.Lstat(key)
	if statErr != nil {
		return fmt.Errorf("%w; then it was gone: %w", err, sdk.Unavailable)
	}
	if os.SameFile(own, info) {
		return nil // over NFS: the first reply was lost, and the repeated request met its own work
	}
	return t.taken(root, sdk.PutRequest{Key: key, IfAbsent: true}, info)
}

func rename(root *os.Root, name, key string) error {
	err := root.Rename(name, key)
	for _, folder := range []syscall.Errno{syscall.EISDIR, syscall.ENOTEMPTY, syscall.EEXIST} {
		if errors.Is(err, folder) {
			return errClash
		}
	}
	return err
}

// Get opens the file. What it holds at this moment is what the body yields: a Put that replaces the key makes another file.
func (t *target) Get(ctx context.Context, req sdk.GetRequest) (res sdk.GetResult, err error) {
	err = t.call(ctx, "get", req.Key, t.open, func(root *os.Root) error {
		res, err = t.get(ctx, root, req)
		return err
	})
	return res, err
}

func (t *target) get(ctx context.Context, root *os.Root, req sdk.GetRequest) (sdk.GetResult, error) {
	f, info, err := t.openObject(root, req.Key)
	if err != nil {
		return sdk.GetResult{}, err
	}
	from, n, err := req.Range(info.Size())
	if err == nil {
		_, err = f.Seek(from, io.SeekStart)
	}
	if err != nil {
		f.Close()
		return sdk.GetResult{}, err
	}
	body := &readerWithContext{ctx: ctx, Reader: io.LimitReader(f, n)}
	return sdk.GetResult{Size: n, Body: struct {
		io.Reader
		io.Closer
	}{body, f}}, nil
}

// openObject answers NotFound only while the target's directory is where it was.
func (t *target) openObject(root *os.Root, key string) (*os.File, fs.FileInfo, error) {
	info, err := root.Lstat(key)
	if absent(err) || err == nil && info.IsDir() {
		if err := t.stillThere(root); err != nil {
			return nil, nil, err
		}
		return nil, nil, sdk.NotFound
	}
	if err != nil {
		return nil, nil, t.explain(root, key, err)
	}
	if !info.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("%s: %w", key, errLink)
	}
	f, err := root.OpenFile(key, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, sdk.NotFound // deleted since
	}
	if err != nil {
		return nil, nil, err
	}
	if info, err = f.Stat(); err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: %w", key, errLink)
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// readerWithContext stops between two reads when ctx has ended.
type readerWithContext struct {
	ctx context.Context
	io.Reader
}

func (r *readerWithContext) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}
