package sdktest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cairnsync/cairn/sdk"
)

// Case is one sentence of the contract and the proof of it.
type Case struct {
	Name  string // the sentence it proves
	Level Level
	Run   func(ctx context.Context, e *Env) error
}

// DefaultKeys is the number of objects of the largest listing: more than two pages of 1,000, in a time that a slow store bears.
const DefaultKeys = 2500

// Env is where the cases run.
type Env struct {
	Target sdk.Target
	// Reopen gives a second instance of the same store, as after a restart; nil = the cases that need one are skipped.
	Reopen func(ctx context.Context) (sdk.Target, error)
	// Spool is the directory for bodies above sdk.MaxInline, for a target behind the RPC; "" = all bodies lie in memory.
	Spool string
	// Prefix is the part of the store that the exam may write and delete below; "" = "exam". Nothing else is touched.
	Prefix string
	// Keys is the number of objects of the largest listing; 0 = DefaultKeys.
	Keys int
	// Levels are those to be examined; nil = all.
	Levels []Level
	// Skip names levels that are left out, each with the reason that the report gives.
	Skip map[Level]string
	// Process starts the plugin as processes of its own; nil = the level Process is left out, for there is no process.
	Process Starter
	// Away is a configuration as Process.Config gives it, with which the store cannot be reached; nil = Process.Config with its URLs changed to
	// one where nobody listens. The case that needs it is skipped where there is neither.
	Away []byte

	soon  time.Duration // the most that the exam waits for what must happen soon; 0 = 15 s
	pack  int64         // size of the objects of the busiest moment; 0 = 16 MiB, as a full pack of ours
	notes *notes        // of the case that runs
}

// Result is the outcome of one case: passed when both Err and Skipped are empty.
type Result struct {
	Case    Case
	Err     error
	Skipped string   // why it was not run
	Notes   []string // what was measured on the way, for people
}

// Cases are all of them, in the order in which a report shows them.
func Cases() []Case {
	return slices.Concat(
		putCases(), getCases(), listCases(), deleteCases(), contextCases(), conditionalCases(),
		bulkCases(), bulkListCases(),
		besideCases(), describeCases(), configureCases(), lifeCases(), killCases(), wireCases(),
	)
}

// cases are those that this Env asks for.
func (e *Env) cases() []Case {
	return slices.DeleteFunc(Cases(), func(c Case) bool {
		return e.Levels != nil && !slices.Contains(e.Levels, c.Level) || c.Level == Process && e.Process == nil
	})
}

// Results runs the cases of e.Levels one after another with RunCase and yields each result as it comes. It does not end early with
// ctx: the cases that were not run then say so. When a second process does not work beside the first, which is examined before the rest of
// the level Process, the rest is skipped with that reason.
func Results(ctx context.Context, e *Env) iter.Seq[Result] {
	return func(yield func(Result) bool) {
		env := e
		for _, c := range e.cases() {
			result := RunCase(ctx, c, env)
			if !yield(result) {
				return
			}
			env = env.after(result)
		}
	}
}

// RunCases gives all of Results at the end.
func RunCases(ctx context.Context, e *Env) []Result { return slices.Collect(Results(ctx, e)) }

// Run makes a subtest of each case; open is called for each and gives it a store of its own or a shared one. The level Process needs the
// built plugin and is the matter of `cairn plugin check`; with -short the level Bulk is skipped.
func Run(t *testing.T, open func(t *testing.T) *Env) {
	t.Helper()
	for _, c := range Cases() {
		if c.Level == Process {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			if c.Level == Bulk && testing.Short() {
				t.Skip("large objects and many keys are left out with -short")
			}
			result := RunCase(t.Context(), c, open(t))
			for _, note := range result.Notes {
				t.Log(note)
			}
			switch {
			case result.Err != nil:
				t.Error(result.Err)
			case result.Skipped != "":
				t.Skip(result.Skipped)
			}
		})
	}
}

// caseLimit ends a case that a store too slow to be of use would draw out for ever.
const caseLimit = 15 * time.Minute

// RunCase runs one case, below a prefix of its own that is emptied afterwards. A panic of the target is the case's failure.
func RunCase(ctx context.Context, c Case, e *Env) Result {
	result := Result{Case: c, Skipped: e.Skip[c.Level]}
	if err := context.Cause(ctx); err != nil && result.Skipped == "" {
		result.Skipped = "the exam was ended: " + err.Error()
	}
	if result.Skipped != "" {
		return result
	}
	own, err := e.below(c)
	if err != nil {
		result.Err = err
		return result
	}
	defer own.clear(context.WithoutCancel(ctx))
	limited, cancel := context.WithTimeoutCause(ctx, caseLimit, fmt.Errorf("the case took longer than %s", caseLimit))
	defer cancel()
	var skip skipped
	switch err := c.run(limited, own); {
	case errors.As(err, &skip):
		result.Skipped = string(skip)
	case err != nil && ctx.Err() != nil: // not the target's fault
		result.Skipped = "the exam was ended: " + context.Cause(ctx).Error()
	default:
		result.Err = err
	}
	result.Notes = own.notes.all()
	return result
}

// run is Run, with a panic of the target as the case's failure.
func (c Case) run(ctx context.Context, e *Env) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return c.Run(ctx, e)
}

// below is an Env with a prefix that no other case and no earlier run has used.
func (e *Env) below(c Case) (*Env, error) {
	nonce := make([]byte, 6)
	if _, err := rand.Read(nonce); err != nil {
		return nil, fmt.Errorf("name the case %q: %w", c.Name, err)
	}
	own := *e
	if own.Prefix == "" {
		own.Prefix = "exam"
	}
	if own.Keys <= 0 {
		own.Keys = DefaultKeys
	}
	if own.soon <= 0 {
		own.soon = 15 * time.Second
	}
	if own.pack <= 0 {
		own.pack = 16 << 20
	}
	own.Prefix += "/" + hex.EncodeToString(nonce)
	own.notes = &notes{}
	return &own, nil
}

// clear empties the case's prefix. Errors are left: a target that cannot list or delete has a case that says so.
func (e *Env) clear(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, caseLimit)
	defer cancel()
	var keys []string
	for obj, err := range e.Target.List(ctx, sdk.ListRequest{Prefix: e.Prefix + "/"}) {
		if err != nil {
			break
		}
		keys = append(keys, obj.Key)
	}
	for chunk := range slices.Chunk(keys, sdk.MaxDelete) {
		_ = e.Target.Delete(ctx, chunk)
	}
}

// skipped is the reason why a case cannot run here.
type skipped string

func (s skipped) Error() string { return "skipped: " + string(s) }

// notes are collected from several goroutines.
type notes struct {
	mu    sync.Mutex
	lines []string
}

func (n *notes) add(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lines = append(n.lines, fmt.Sprintf(format, args...))
}

func (n *notes) all() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.lines)
}
