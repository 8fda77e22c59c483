package syncer

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cairnsync/cairn/core/repository"
	"github.com/cairnsync/cairn/sdk"
	"github.com/cairnsync/cairn/sdk/sdktest"
)

// threeCommits is a repository with a seal and the commits 2, 3 and 4, which share chunks.
func threeCommits(t *testing.T) *author {
	a := newAuthor(t)
	files := content{"state.db": noise(1, 5*mib), "wal": text("frame ", mib), "empty": nil, "zeros": make([]byte, 2*mib)}
	a.commit(10, files)
	files["state.db"] = append(slices.Clone(files["state.db"][:3*mib]), noise(2, 2*mib)...)
	a.commit(20, files)
	files["wal"] = text("other ", mib)
	a.commit(30, files)
	return a
}

func verify(t *testing.T, store sdk.Target, req VerifyRequest) VerifyReport {
	t.Helper()
	req.Spool = spoolOf(t)
	rep, err := readerOf(t, store).Verify(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return rep
}

// noWrites fails the test when anything is written or deleted.
func noWrites(t *testing.T, target sdk.Target) *sdktest.Faulty {
	return &sdktest.Faulty{Target: target, Before: func(_ context.Context, c sdktest.Call) error {
		if c.Op == "put" || c.Op == "delete" {
			t.Errorf("a verification writes: %s %s", c.Op, c.Key)
		}
		return nil
	}}
}

func TestAWholeRepositoryIsProvenAtEachLevel(t *testing.T) {
	a := threeCommits(t)
	for _, row := range []struct {
		req    VerifyRequest
		chunks func(n int) bool
	}{
		{VerifyRequest{}, func(n int) bool { return n == 0 }},
		{VerifyRequest{Level: VerifySample, Fraction: 0.2, Seed: 7}, func(n int) bool { return n > 0 && n < 6 }},
		{VerifyRequest{Level: VerifyDeep}, func(n int) bool { return n == 9 }}, // 5 and 2 of state.db, 1 and 1 of wal
	} {
		rep := verify(t, noWrites(t, a.mem), row.req)
		if len(rep.Problems) != 0 || rep.Commits != 3 || rep.Seals != 1 || !row.chunks(rep.Chunks) || rep.Requests == 0 {
			t.Errorf("%s: %d problems, %d commits, %d seals, %d chunks: %+v", rep.Level, len(rep.Problems), rep.Commits, rep.Seals, rep.Chunks, rep.Problems)
		}
		if rep.Proof == nil || rep.Proof.Commit != 4 || rep.Proof.Checkpoint != idOf(1030) || rep.Proof.Level != rep.Level || rep.Proof.Commits != 3 {
			t.Errorf("%s: proof %+v", rep.Level, rep.Proof)
		}
	}
}

func TestADeepVerificationReadsEachPackOnce(t *testing.T) {
	a := threeCommits(t)
	var read atomic.Int64
	var mu sync.Mutex
	gets := map[string]int{}
	store := counting(a.mem, &read)
	store.Before = func(_ context.Context, c sdktest.Call) error {
		if strings.Contains(c.Key, "/pack/") && c.Op == "get" {
			mu.Lock()
			gets[c.Key]++
			mu.Unlock()
		}
		return nil
	}
	rep := verify(t, store, VerifyRequest{Level: VerifyDeep})
	for key, n := range gets {
		if n != 1 {
			t.Errorf("%s is read %d times", key, n)
		}
	}
	if len(gets) != rep.Packs || read.Load() != rep.Bytes {
		t.Errorf("%d of %d packs are read, %d bytes where the report says %d", len(gets), rep.Packs, read.Load(), rep.Bytes)
	}
}

// damageAll is each way to break a repository by hand, with what must be found.
func damageAll() []struct {
	name   string
	level  VerifyLevel
	harm   func(*author)
	want   ProblemKind
	broken []uint64
} {
	firstPack := func(a *author) string { return repository.PackKey(testPrefix, a.commits[2].Packs[0]) }
	return []struct {
		name   string
		level  VerifyLevel
		harm   func(*author)
		want   ProblemKind
		broken []uint64
	}{
		{"a pack that all commits need is deleted", VerifyMetadata, func(a *author) { a.remove(firstPack(a)) }, MissingPack, []uint64{2, 3, 4}},
		{"the newest commit's own pack is deleted", VerifyMetadata, func(a *author) {
			a.remove(repository.PackKey(testPrefix, a.commits[4].Packs[len(a.commits[4].Packs)-1]))
		}, MissingPack, []uint64{4}},
		{"a pack is cut by a byte", VerifyMetadata, func(a *author) { a.change(firstPack(a), cut) }, DamagedPack, []uint64{2, 3, 4}},
		{"a byte of a pack is flipped", VerifyDeep, func(a *author) { a.change(firstPack(a), flip) }, DamagedPack, []uint64{2, 3, 4}},
		{"a commit in the middle is deleted", VerifyMetadata, func(a *author) { a.remove(repository.CommitKey(testPrefix, 3)) }, MissingCommit, []uint64{3}},
		{"a byte of a commit is flipped", VerifyMetadata, func(a *author) { a.change(repository.CommitKey(testPrefix, 3), flip) }, DamagedCommit, []uint64{3}},
		{"the newest commit is cut", VerifyMetadata, func(a *author) { a.change(repository.CommitKey(testPrefix, 4), cut) }, DamagedCommit, []uint64{4}},
		{"a commit is replaced by another one", VerifyMetadata, func(a *author) {
			c := *a.commits[3]
			c.Created = c.Created.Add(1)
			a.plant(repository.CommitKey(testPrefix, 3), must(repository.EncodeCommit(&c)))
		}, BrokenLine, []uint64{4}},
		{"FORMAT.json is deleted", VerifyMetadata, func(a *author) { a.remove(repository.FormatKey(testPrefix)) }, DamagedFormat, nil},
		{"the highest epoch is deleted", VerifyMetadata, func(a *author) { a.remove(repository.EpochKey(testPrefix, 1)) }, DamagedEpoch, nil},
		{"an epoch is damaged", VerifyMetadata, func(a *author) { a.change(repository.EpochKey(testPrefix, 1), flip) }, DamagedEpoch, nil},
		{"gc is damaged", VerifyMetadata, func(a *author) { a.plant(repository.GCKey(testPrefix, 1), []byte("{")) }, DamagedGC, nil},
		{"all commits are deleted", VerifyMetadata, func(a *author) {
			for n := uint64(1); n <= 4; n++ {
				a.remove(repository.CommitKey(testPrefix, n))
			}
		}, MissingHistory, nil},
	}
}

// change replaces an object by what f makes of it, as damage at rest does.
func (a *author) change(key string, f func([]byte) []byte) {
	a.t.Helper()
	stored, ok := a.mem.Content(key)
	if !ok {
		a.t.Fatalf("there is no %s", key)
	}
	a.plant(key, f(slices.Clone(stored)))
}

// CASES A9: a marker without its data is found, with the commits that it breaks.
// CASES A17: a byte that was flipped at rest is found.
func TestEachDamageDoneByHandIsFoundAndNamesWhatItBreaks(t *testing.T) {
	for _, row := range damageAll() {
		a := threeCommits(t)
		row.harm(a)
		rep := verify(t, noWrites(t, a.mem), VerifyRequest{Level: row.level})
		i := slices.IndexFunc(rep.Problems, func(p Problem) bool { return p.Kind == row.want })
		if i < 0 || rep.Proof != nil {
			t.Errorf("%s: proof %v, problems %+v", row.name, rep.Proof, rep.Problems)
			continue
		}
		p := rep.Problems[i]
		if !slices.Equal(p.Commits, row.broken) || !slices.Equal(rep.Broken, row.broken) {
			t.Errorf("%s: breaks %v, all in all %v, want %v", row.name, p.Commits, rep.Broken, row.broken)
		}
		if p.Object == "" || p.What == "" || p.Remedy == "" {
			t.Errorf("%s: object, cause or remedy is missing: %+v", row.name, p)
		}
	}
}

func TestADamagedChunkIsNamedWithAFileThatNeedsIt(t *testing.T) {
	a := threeCommits(t)
	a.change(repository.PackKey(testPrefix, a.commits[2].Packs[0]), flip)
	rep := verify(t, a.mem, VerifyRequest{Level: VerifyDeep})
	if len(rep.Problems) != 1 || rep.Problems[0].File != "state.db" || !strings.Contains(rep.Problems[0].What, "offset") {
		t.Fatalf("problems %+v", rep.Problems)
	}
}

func TestAWholeSampleFindsWhatADeepVerificationFinds(t *testing.T) {
	a := threeCommits(t)
	a.change(repository.PackKey(testPrefix, a.commits[2].Packs[0]), flip)
	rep := verify(t, a.mem, VerifyRequest{Level: VerifySample, Fraction: 1})
	if len(rep.Problems) != 1 || rep.Chunks != 9 {
		t.Fatalf("%d chunks, problems %+v", rep.Chunks, rep.Problems)
	}
}

func TestDamageOnTheWayIsNoDamageAtRest(t *testing.T) {
	a := threeCommits(t)
	var n atomic.Int64
	store := &sdktest.Faulty{Target: a.mem, Body: func(c sdktest.Call, body io.ReadCloser) io.ReadCloser {
		if !strings.Contains(c.Key, "/pack/") || n.Add(1) > 1 {
			return body
		}
		b, err := io.ReadAll(body)
		if err != nil {
			t.Error(err)
		}
		return io.NopCloser(strings.NewReader(string(flip(b))))
	}}
	if rep := verify(t, store, VerifyRequest{Level: VerifyDeep}); rep.Proof == nil {
		t.Fatalf("problems %+v", rep.Problems)
	}
}

func TestACommitIsVerifiedAlone(t *testing.T) {
	a := threeCommits(t)
	a.remove(repository.PackKey(testPrefix, a.commits[4].Packs[len(a.commits[4].Packs)-1]))
	older := verify(t, a.mem, VerifyRequest{Level: VerifyDeep, From: &Selector{Number: 3}})
	if older.Proof == nil || older.Proof.Commit != 3 || older.Commits != 1 {
		t.Errorf("the whole commit: %+v", older)
	}
	newest := verify(t, a.mem, VerifyRequest{From: &Selector{}})
	if newest.Proof != nil || len(newest.Problems) != 1 {
		t.Errorf("the broken one: %+v", newest.Problems)
	}
}

func TestACommitThatIsKnownToHaveBeenMadeIsMissed(t *testing.T) {
	a := threeCommits(t)
	a.remove(repository.CommitKey(testPrefix, 4))
	rep := verify(t, a.mem, VerifyRequest{Expect: 4})
	if rep.Proof != nil || len(rep.Problems) != 1 || rep.Problems[0].Kind != MissingCommit || !slices.Equal(rep.Broken, []uint64{4}) {
		t.Errorf("problems %+v", rep.Problems)
	}
}

func TestARepositoryWithoutACheckpointIsNeitherWholeNorBroken(t *testing.T) {
	if rep := verify(t, newAuthor(t).mem, VerifyRequest{}); rep.Proof != nil || len(rep.Problems) != 0 {
		t.Errorf("proof %v, problems %+v", rep.Proof, rep.Problems)
	}
}

// A target that was mistyped, or whose disk is away below a folder that is there, must not pass for one where nothing is wrong.
func TestWhereThereIsNoRepositoryNothingCanBeVerified(t *testing.T) {
	for _, from := range []*Selector{nil, {}} {
		_, err := readerOf(t, sdktest.NewMem()).Verify(t.Context(), VerifyRequest{From: from})
		if !errors.Is(err, ErrNoRepository) {
			t.Fatalf("from %v: %v", from, err)
		}
		for _, want := range []string{"verify: target \"offsite\", prefix", "mounted", "cairn checkpoint push"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%v does not say %s", err, want)
			}
		}
	}
	rep := verify(t, sdktest.NewMem(), VerifyRequest{Expect: 4})
	if rep.Proof != nil || !slices.Equal(rep.Broken, []uint64{1, 2, 3, 4}) {
		t.Errorf("where commits are known to have been made: problems %+v", rep.Problems)
	}
}

func TestPacksThatNoCommitNamesAreCountedOnceTheirAttemptIsOver(t *testing.T) {
	a := threeCommits(t)
	for _, number := range []uint64{3, 4, 5} { // 5 is still in the making
		a.plant(repository.PackKey(testPrefix, repository.PackID{Epoch: 1, Number: number, SHA256: repository.Sum([]byte("x"))}), []byte("x"))
	}
	rep := verify(t, a.mem, VerifyRequest{})
	if rep.Orphans != 2 || rep.OrphanBytes != 2 || rep.Proof == nil {
		t.Errorf("%d orphans of %d bytes, problems %+v", rep.Orphans, rep.OrphanBytes, rep.Problems)
	}
}

// Calling them orphans would invite to sweep what the commit needs once it was put back from a copy.
func TestPacksThatACommitWhichCannotBeReadMayNameAreNotCalledOrphans(t *testing.T) {
	for name, harm := range map[string]func(a *author){
		"a damaged commit": func(a *author) { a.change(repository.CommitKey(testPrefix, 4), flip) },
		"a missing commit": func(a *author) { a.remove(repository.CommitKey(testPrefix, 3)) },
	} {
		a := threeCommits(t)
		harm(a)
		if rep := verify(t, a.mem, VerifyRequest{}); rep.Orphans != 0 || rep.OrphanBytes != 0 || len(rep.Problems) == 0 {
			t.Errorf("%s: %d orphans of %d bytes, problems %+v", name, rep.Orphans, rep.OrphanBytes, rep.Problems)
		}
	}
}

func TestWhatRetentionTakesWhileAVerificationReadsIsNoProblem(t *testing.T) {
	for _, at := range []string{
		"list " + repository.CommitPrefix(testPrefix), "get " + repository.CommitPrefix(testPrefix), "list " + repository.GCPrefix(testPrefix),
		"list " + repository.PackPrefix(testPrefix), "get " + repository.PackPrefix(testPrefix),
	} {
		a := threeCommits(t)
		var once atomic.Bool
		store := &sdktest.Faulty{Target: a.mem, Before: func(_ context.Context, c sdktest.Call) error {
			if strings.HasPrefix(c.Op+" "+c.Key, at) && once.CompareAndSwap(false, true) {
				a.retire(3)
			}
			return nil
		}}
		rep := verify(t, store, VerifyRequest{Level: VerifyDeep})
		if rep.Proof == nil || rep.Proof.Commit != 4 {
			t.Errorf("retention at the first %s: problems %+v", at, rep.Problems)
		}
	}
}

// A listing of the commits is overtaken by a push, and by a retention that leaves of what was listed only what a pin keeps.
func TestAVerificationThatIsOvertakenProvesTheNewestCommitThatThereIs(t *testing.T) {
	for _, at := range []string{"get " + repository.FormatKey(testPrefix), "list " + repository.GCPrefix(testPrefix), "get " + repository.CommitPrefix(testPrefix)} {
		a := threeCommits(t)
		var once atomic.Bool
		store := &sdktest.Faulty{Target: a.mem, Before: func(_ context.Context, c sdktest.Call) error {
			if strings.HasPrefix(c.Op+" "+c.Key, at) && once.CompareAndSwap(false, true) {
				a.commit(40, content{"state.db": noise(3, mib)})
				a.retire(4, 2)
			}
			return nil
		}}
		rep := verify(t, store, VerifyRequest{})
		if rep.Proof == nil || rep.Proof.Commit != 5 || rep.Commits != 2 || !once.Load() {
			t.Errorf("overtaken at the first %s: newest %+v, problems %+v", at, rep.Newest, rep.Problems)
		}
	}
}

// CASES A9: what retention left is no proof when the newest commit, which it never takes, is not there.
func TestThatTheNewestCommitIsLostIsSeenByWhatRetentionSays(t *testing.T) {
	a := threeCommits(t)
	a.retire(3, 2)
	a.remove(repository.CommitKey(testPrefix, 4))
	rep := verify(t, a.mem, VerifyRequest{})
	if rep.Proof != nil || len(rep.Problems) != 1 || rep.Problems[0].Kind != MissingCommit || !slices.Equal(rep.Broken, []uint64{4}) {
		t.Errorf("proof %+v, problems %+v", rep.Proof, rep.Problems)
	}
}

func TestWhatCannotBeReadIsNotCalledDamaged(t *testing.T) {
	a := threeCommits(t)
	store := &sdktest.Faulty{Target: a.mem, Before: func(_ context.Context, c sdktest.Call) error {
		if strings.Contains(c.Key, "/pack/") {
			return &sdk.Error{Code: sdk.PermissionDenied}
		}
		return nil
	}}
	_, err := readerOf(t, store).Verify(t.Context(), VerifyRequest{Level: VerifyDeep, Spool: spoolOf(t)})
	if sdk.CodeOf(err) != sdk.PermissionDenied {
		t.Fatalf("verify without the right to read packs: %v", err)
	}
}

// CASES A48: what a newer version wrote is refused by its name, not taken for damage.
func TestWhatANewerVersionWroteIsNotCalledDamaged(t *testing.T) {
	a := threeCommits(t)
	a.change(repository.FormatKey(testPrefix), func(b []byte) []byte {
		return []byte(strings.Replace(strings.Replace(string(b), `"format":1`, `"format":2`, 1), "cairn 0.1.0", "cairn 9.0.0", 1))
	})
	_, err := readerOf(t, a.mem).Verify(t.Context(), VerifyRequest{})
	if newer, ok := errors.AsType[*repository.UnsupportedError](err); !ok || newer.WrittenBy != "cairn 9.0.0" {
		t.Fatalf("verify of a newer format: %v", err)
	}
}

func TestAVerificationThatMakesNoSenseIsRefused(t *testing.T) {
	r, spool := readerOf(t, threeCommits(t).mem), spoolOf(t)
	for _, req := range []VerifyRequest{
		{Level: "thorough"}, {Level: VerifySample, Spool: spool}, {Level: VerifySample, Fraction: 1.1, Spool: spool}, {Level: VerifyDeep},
	} {
		if _, err := r.Verify(t.Context(), req); err == nil {
			t.Errorf("%+v is taken", req)
		}
	}
}
