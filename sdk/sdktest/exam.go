package sdktest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"testing"

	"github.com/cairnsync/cairn/sdk"
)

// Level groups cases by what they ask of a target.
type Level uint8

// The levels. A target that fails Core cannot be used; one that cannot do Conditional can be used with fencing = "advisory" only.
const (
	Core        Level = iota // the four methods
	Conditional              // Put with IfAbsent
	Bulk                     // large objects and many keys
	Process                  // the plugin as a process
)

// String is the level's name, as in a report.
func (l Level) String() string {
	switch l {
	case Core:
		return "core"
	case Conditional:
		return "conditional"
	case Bulk:
		return "bulk"
	case Process:
		return "process"
	}
	return fmt.Sprintf("Level(%d)", uint8(l))
}

// Case is one sentence of the contract and the proof of it.
type Case struct {
	Name  string // the sentence it proves
	Level Level
	Run   func(ctx context.Context, e *Env) error
}

// Env is where the cases run.
type Env struct {
	Target sdk.Target
	// Reopen gives a second instance of the same store, as after a restart; nil = the cases that need one are skipped.
	Reopen func(ctx context.Context) (sdk.Target, error)
	// Spool is the directory for bodies above sdk.MaxInline, for a target behind the RPC; "" = all bodies lie in memory.
	Spool string
	// Prefix is the part of the store that the exam may write and delete below; "" = "exam". Nothing else is touched.
	Prefix string
	// Skip names levels that are left out, each with the reason that the report gives.
	Skip map[Level]string
}

// Result is the outcome of one case: passed when both Err and Skipped are empty.
type Result struct {
	Case    Case
	Err     error
	Skipped string // why it was not run
}

// Cases are all of them, in the order in which a report shows them.
func Cases() []Case {
	var all []Case
	for _, some := range [][]Case{putCases(), getCases(), listCases(), deleteCases(), contextCases(), conditionalCases()} {
		all = append(all, some...)
	}
	return all
}

// RunCases runs every case in turn with RunCase. It ends early only with ctx: the cases
// that were not run then say so.
func RunCases(ctx context.Context, e *Env) []Result {
	var results []Result
	for _, c := range Cases() {
		results = append(results, RunCase(ctx, c, e))
	}
	return results
}

// Run makes a subtest of each case; open is called for each and gives it a store of its own or a shared one.
func Run(t *testing.T, open func(t *testing.T) *Env) {
	t.Helper()
	for _, c := range Cases() {
		t.Run(c.Name, func(t *testing.T) {
			switch result := RunCase(t.Context(), c, open(t)); {
			case result.Err != nil:
				t.Error(result.Err)
			case result.Skipped != "":
				t.Skip(result.Skipped)
			}
		})
	}
}

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
	var skip skipped
	if err := c.run(ctx, own); errors.As(err, &skip) {
		result.Skipped = string(skip)
	} else {
		result.Err = err
	}
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
	own.Prefix += "/" + hex.EncodeToString(nonce)
	return &own, nil
}

// clear empties the case's prefix. Errors are left: a target that cannot list or delete has a case that says so.
func (e *Env) clear(ctx context.Context) {
	var keys []string
	for obj, err := range e.Target.List(ctx, sdk.ListRequest{Prefix: e.Prefix + "/"}) {
		if err != nil {
			break
		}
		keys = append(keys, obj.Key)
	}
	for len(keys) > 0 {
		n := min(len(keys), sdk.MaxDelete)
		_ = e.Target.Delete(ctx, keys[:n])
		keys = keys[n:]
	}
}

// skipped is the reason why a case cannot run here.
type skipped string

func (s skipped) Error() string { return "skipped: " + string(s) }
