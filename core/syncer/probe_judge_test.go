package syncer

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/cairnsync/cairn/sdk"
)

// A row states a rule of the decision: what a probe has seen, and what that means under either kind of fencing.
func TestWhatTheRightsMean(t *testing.T) {
	denied, failed, down := &sdk.Error{Code: sdk.PermissionDenied}, &sdk.Error{Code: sdk.Unsupported}, &sdk.Error{Code: sdk.Unavailable}
	for _, row := range []struct {
		name               string
		read, write        error
		list, del, cond    error
		required, advisory Use
		say                string // of the reason or the limits under required
	}{
		{name: "all rights: pushes are safe", required: UsePush, advisory: UseAdvisory},
		{name: "no right to delete: pushes go on, and that is said", del: denied, required: UsePush, advisory: UseAdvisory, say: "the right to delete is denied"},
		{name: "a delete that does nothing is said as well", del: failed, required: UsePush, advisory: UseAdvisory, say: "the right to delete is failed"},
		{name: "a delete without an answer keeps nothing from being pushed", del: down, required: UsePush, advisory: UseAdvisory, say: "the right to delete is unknown"},
		{name: "no create-if-absent: refused, or advisory", cond: failed, required: UseNone, advisory: UseAdvisory, say: "create-if-absent"},
		{name: "conditional puts denied: likewise", cond: denied, required: UseNone, advisory: UseAdvisory, say: "create-if-absent"},
		{name: "no right to list: refused", list: denied, required: UseNone, advisory: UseNone, say: "the right to list"},
		{name: "a listing that lags: refused, and no right is said to be missing", list: failed, required: UseNone, advisory: UseNone, say: "the attempt to list does not end as the contract says"},
		{name: "no right to read: refused", read: denied, required: UseNone, advisory: UseNone, say: "the right to read"},
		{name: "a range that is wrong: refused likewise", read: failed, required: UseNone, advisory: UseNone, say: "the attempt to read does not end as the contract says"},
		{name: "no right to write: restores only", write: denied, required: UseReadOnly, advisory: UseReadOnly, say: "restores work"},
		{name: "the whole store denied: the right to list is named first", read: denied, write: denied, list: denied, del: denied, cond: denied, required: UseNone, advisory: UseNone, say: "the right to list"},
		{name: "no answer: to be tried again", read: down, write: down, list: down, del: down, cond: down, required: UseUnknown, advisory: UseUnknown, say: "not known"},
		{name: "an answer that refuses counts more than one that is missing", list: denied, write: down, required: UseNone, advisory: UseNone, say: "the right to list"},
		{name: "create-if-absent not known: to be tried again", cond: down, required: UseUnknown, advisory: UseUnknown, say: "not known"},
	} {
		t.Run(row.name, func(t *testing.T) {
			var r ProbeReport
			for right, err := range map[*Right]error{&r.Read: row.read, &r.Write: row.write, &r.List: row.list, &r.Delete: row.del, &r.Conditional: row.cond} {
				if right.good(); err != nil {
					right.bad(err)
				}
			}
			for fencing, want := range map[Fencing]Use{FencingRequired: row.required, "": row.required, FencingAdvisory: row.advisory} {
				v := r.Judge(fencing)
				if v.Use != want {
					t.Errorf("fencing %q: %s, want %s", fencing, v.Use, want)
				}
				refusal := v.Refusal("offsite")
				if refused := v.Use == UseNone || v.Use == UseReadOnly; (refusal != nil) != refused || refused && (v.Remedy == "" || !strings.Contains(refusal.Error(), v.Remedy)) {
					t.Errorf("fencing %q: refusal %v", fencing, refusal)
				}
				if v.Use == UseUnknown && !errors.Is(v.cause, sdk.Unavailable) {
					t.Errorf("fencing %q: the job's error would be %v", fencing, v.cause)
				}
			}
			v := r.Judge(FencingRequired)
			if said := v.Reason + strings.Join(v.Limits, " "); (said == "") != (row.say == "") || !strings.Contains(said, row.say) {
				t.Errorf("it says %q, want %q", said, row.say)
			}
		})
	}
}

func TestAPluginThatPanicsIsNotSaidToLackARight(t *testing.T) {
	var r ProbeReport
	r.List.good()
	r.Read.bad(&sdk.Error{Op: "get", Err: errors.New("the plugin panicked at target.go:87: assignment to entry in nil map")})
	v := r.Judge(FencingRequired)
	if said := v.Refusal("offsite").Error(); v.Use != UseNone || strings.Contains(said, "right to") || strings.Contains(said, "grant") || !strings.Contains(said, "defect of the plugin") || !strings.Contains(said, "target.go:87") {
		t.Errorf("%s: %s", v.Use, said)
	}
}

func TestAnErrorTellsOfARightWhatItCan(t *testing.T) {
	want := map[sdk.Code]RightState{
		sdk.PermissionDenied: RightDenied,
		sdk.Internal:         RightFailed, sdk.NotFound: RightFailed, sdk.Exists: RightFailed, sdk.InvalidConfig: RightFailed, sdk.Corrupt: RightFailed, sdk.Unsupported: RightFailed,
		// Each of these passes, or is put right, without a word about what is allowed.
		sdk.Unauthenticated: RightUnknown, sdk.Throttled: RightUnknown, sdk.Unavailable: RightUnknown, sdk.NoSpace: RightUnknown,
		sdk.Cancelled: RightUnknown, sdk.PluginGone: RightUnknown, sdk.PluginHung: RightUnknown,
	}
	for code := sdk.Internal; code.Known(); code++ {
		if got := stateOf(&sdk.Error{Code: code}); got != want[code] {
			t.Errorf("%s: %s, want %s", code, got, want[code])
		}
	}
}

func TestTheWarningOfAdvisoryFencingIsSaidBeforeAnythingWasProbed(t *testing.T) {
	if got := Warnings(FencingAdvisory, nil); len(got) != 1 || !strings.Contains(got[0], "two writers cannot be told apart") {
		t.Errorf("got %q", got)
	}
	if got := Warnings(FencingRequired, nil); got == nil || len(got) != 0 {
		t.Errorf("got %q", got)
	}
}

func TestTheSkewIsThatOfTheMomentInTheMiddleOfTheCall(t *testing.T) {
	at := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	for _, row := range []struct {
		modified time.Time
		want     *ClockSkew
	}{
		{time.Time{}, nil},
		{at.Add(time.Second), &ClockSkew{Ahead: 0, Within: 2 * time.Second}},
		{at.Add(time.Hour), &ClockSkew{Ahead: time.Hour - time.Second, Within: 2 * time.Second}},
		{at.Add(-time.Hour), &ClockSkew{Ahead: -time.Hour - time.Second, Within: 2 * time.Second}},
	} {
		got := skewOf(at, at.Add(2*time.Second), row.modified)
		if (got == nil) != (row.want == nil) || got != nil && *got != *row.want {
			t.Errorf("modified %s: %+v, want %+v", row.modified, got, row.want)
		}
	}
}
