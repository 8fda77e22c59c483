package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sync/errgroup"
)

// syncsInFlight bounds the files that are hashed and synced at once: 16 syncs in parallel are 6.5 times as fast as one after another,
// and each holds one chunk in memory.
const syncsInFlight = 16

// Publish makes the draft a checkpoint: see the package comment for the order. When it returns an error there is no new
// checkpoint, and the draft can still be published, closed or aborted. ctx is heeded until the directory is renamed.
func (d *Draft) Publish(ctx context.Context, meta Meta) (Manifest, error) {
	m, err := d.publish(ctx, meta)
	if err != nil {
		return Manifest{}, fmt.Errorf("publish checkpoint %s: %w", d.id, Explain(d.store.root, err))
	}
	return m, nil
}

func (d *Draft) publish(ctx context.Context, meta Meta) (Manifest, error) {
	if d.done {
		return Manifest{}, errors.New("the draft has ended")
	}
	t, err := walk(d.Dir())
	if err != nil {
		return Manifest{}, err
	}
	files, err := d.settle(ctx, t)
	if err != nil {
		return Manifest{}, err
	}
	if err := expected(meta.Expect, files, d.Dir()); err != nil {
		return Manifest{}, err
	}
	d.store.hook("publish.files-synced")
	m := Manifest{
		ID: d.id, Step: meta.Step, Created: meta.Created.Round(0).UTC(), Incarnation: meta.Incarnation,
		Kind: meta.Kind, Fingerprint: meta.Fingerprint, History: slices.Clone(meta.History), Files: files,
	}
	if err := d.writeManifest(m); err != nil {
		return Manifest{}, err
	}
	if err := ctx.Err(); err != nil {
		return Manifest{}, err
	}
	return m, d.rename(m)
}

// settle makes the files and directories of the draft durable and describes the files. A file that the newest checkpoint holds too
// (a hard link) is neither read nor synced: both were done when that one was published.
func (d *Draft) settle(ctx context.Context, t tree) ([]File, error) {
	known := d.store.knownFiles()
	h := newHasher()
	files := make([]File, len(t.files))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(syncsInFlight)
	for i, name := range t.files {
		group.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			if f, ok := d.reuse(known, name); ok {
				files[i] = f
				return nil
			}
			f, err := h.hash(ctx, d.Dir(), name, d.store.disk.Sync)
			files[i] = f
			return err
		})
	}
	for _, dir := range t.dirs {
		group.Go(func() error { return syncDir(d.store.disk, filepath.Join(d.Dir(), dir)) })
	}
	return files, group.Wait()
}

// knownFiles are the files of the newest checkpoint. When it cannot be read, everything is hashed: publishing a good checkpoint is
// what helps then.
func (s *Store) knownFiles() map[Inode]File {
	s.mu.Lock()
	defer s.mu.Unlock()
	all, err := s.list(neverStopped)
	if err != nil || len(all) == 0 {
		return nil
	}
	newest := all[len(all)-1]
	known := make(map[Inode]File, len(newest.Files))
	for _, f := range newest.Files {
		if f.Inode != (Inode{}) {
			known[f.Inode] = f
		}
	}
	return known
}

func (d *Draft) reuse(known map[Inode]File, name string) (File, bool) {
	info, err := os.Lstat(filepath.Join(d.Dir(), name))
	if err != nil || !info.Mode().IsRegular() {
		return File{}, false // the error is found again, and reported, when the file is opened
	}
	f, ok := known[inodeOf(info)]
	if !ok || f.Size != info.Size() {
		return File{}, false
	}
	f.Path, f.Mode = name, info.Mode().Perm()
	return f, true
}

// expected compares what was read with what a pull was to bring. nil expects nothing in particular.
func expected(want, got []File, root string) error {
	if want == nil {
		return nil
	}
	bad := &problems{}
	have := make(map[string]File, len(got))
	for _, f := range got {
		have[f.Path] = f
	}
	wanted := make(map[string]struct{}, len(want))
	for _, w := range want {
		wanted[w.Path] = struct{}{}
		g, ok := have[w.Path]
		if !ok {
			bad.add(corruptFile(root, w.Path, errMissing))
		} else if err := differs(w, g); err != nil {
			bad.add(corruptFile(root, w.Path, err))
		}
	}
	for _, g := range got {
		if _, ok := wanted[g.Path]; !ok {
			bad.add(corruptFile(root, g.Path, errStray))
		}
	}
	return bad.err()
}

// writeManifest puts checkpoint.json beside files/. A draft that is resumed may hold one that was never published.
func (d *Draft) writeManifest(m Manifest) error {
	data, err := encodeManifest(m)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(d.top(), manifestName), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if err := writeSynced(d.store.disk, f, data); err != nil {
		return fmt.Errorf("write %s: %w", manifestName, err)
	}
	d.store.hook("publish.manifest-written")
	if err := syncDir(d.store.disk, d.top()); err != nil {
		return err
	}
	d.store.hook("publish.manifest-synced")
	return nil
}

// rename is the moment of publication. It holds the lock until the name is durable: nobody lists or pushes a checkpoint that a power
// cut could still take back.
func (d *Draft) rename(m Manifest) error {
	s := d.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if d.instead {
		if err := s.giveWay(d.id); err != nil {
			return err
		}
		s.hook("publish.gave-way")
	}
	if err := s.disk.Rename(d.top(), s.dir(published, d.id)); err != nil {
		return errors.Join(err, d.unreplace())
	}
	s.hook("publish.renamed")
	if err := syncDir(s.disk, s.root); err != nil {
		return errors.Join(err, s.disk.Rename(s.dir(published, d.id), d.top()), d.unreplace())
	}
	s.hook("publish.synced")
	if d.instead {
		_ = s.keepReplaced(d.id) // the new one stands all the same, and the next OpenDir tries again
	}
	if info, err := os.Lstat(filepath.Join(s.dir(published, d.id), manifestName)); err == nil {
		s.cache[d.id] = cached{info: info, manifest: m} // otherwise the next List reads it
	}
	d.endLocked()
	return nil
}

// unreplace gives the name back to a damaged checkpoint that has given way for nothing.
func (d *Draft) unreplace() error {
	if !d.instead {
		return nil
	}
	return d.store.takeBack(d.id)
}
