package syncer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/sdk"
	"github.com/cairnsync/cairn/sdk/sdktest"
)

// odd is a store in memory with one oddity.
type odd struct {
	*sdktest.Mem

	put    func(ctx context.Context, req sdk.PutRequest) (sdk.PutResult, error)
	get    func(ctx context.Context, req sdk.GetRequest) (sdk.GetResult, error)
	list   func(ctx context.Context, req sdk.ListRequest) iter.Seq2[sdk.Object, error]
	delete func(ctx context.Context, keys []string) error
}

func (o odd) Put(ctx context.Context, req sdk.PutRequest) (sdk.PutResult, error) {
	if o.put != nil {
		return o.put(ctx, req)
	}
	return o.Mem.Put(ctx, req)
}

func (o odd) Get(ctx context.Context, req sdk.GetRequest) (sdk.GetResult, error) {
	if o.get != nil {
		return o.get(ctx, req)
	}
	return o.Mem.Get(ctx, req)
}

func (o odd) List(ctx context.Context, req sdk.ListRequest) iter.Seq2[sdk.Object, error] {
	if o.list != nil {
		return o.list(ctx, req)
	}
	return o.Mem.List(ctx, req)
}

func (o odd) Delete(ctx context.Context, keys []string) error {
	if o.delete != nil {
		return o.delete(ctx, keys)
	}
	return o.Mem.Delete(ctx, keys)
}

// probed is a probe of a target, with retries that do not wait.
func probed(t *testing.T, target sdk.Target, owner uuid.UUID) ProbeReport {
	t.Helper()
	report, err := Probe(t.Context(), ProbeConfig{
		Target: "offsite", Prefix: "strikes", Store: Direct(target), Owner: owner, RetryBudget: time.Minute,
		Now: ticking(), Jitter: func() float64 { return 0 },
	})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// said are the states of read, write, list, delete and conditional.
func said(r ProbeReport) string {
	return fmt.Sprint(r.Read.State, r.Write.State, r.List.State, r.Delete.State, r.Conditional.State)
}

func TestAProbeOfAStoreThatKeepsTheContractFindsAllRightsAndLeavesNothing(t *testing.T) {
	mem := sdktest.NewMem()
	var calls []string
	r := probed(t, &sdktest.Faulty{Target: mem, Before: record(&calls)}, uuid.New())
	if got := said(r); got != fmt.Sprint(RightOK, RightOK, RightOK, RightOK, RightOK) {
		t.Errorf("rights %s: %+v", got, r.Rights)
	}
	if keys := mem.Keys(); len(keys) != 0 {
		t.Errorf("it leaves %q", keys)
	}
	for i, call := range calls {
		calls[i] = strings.Fields(call)[0]
	}
	want := []string{"get", "put", "put", "put", "get", "get", "list", "delete", "get"}
	if !slices.Equal(calls, want) {
		t.Errorf("calls %q, want %q", calls, want)
	}
	if r.Skew == nil || r.Skew.Ahead > -20*365*24*time.Hour { // the clock of Mem starts in the year 2000
		t.Errorf("skew %+v", r.Skew)
	}
	if r.At.IsZero() || r.Read.Took <= 0 || r.Conditional.Took <= 0 || r.Delete.Took <= 0 {
		t.Errorf("times %+v", r)
	}
}

// Each row plants one fault, and the probe names the right that it takes away, and no other.
func TestAProbeTellsTheTruthOfEachRight(t *testing.T) {
	code := func(code sdk.Code) error { return &sdk.Error{Code: code, Provider: "AccessDenied", Hint: "grant it"} }
	for _, row := range []struct {
		name  string
		plant func(mem *sdktest.Mem) odd
		want  [5]RightState // read, write, list, delete, conditional
		say   string
	}{
		{"IfAbsent is ignored", func(mem *sdktest.Mem) odd {
			return odd{put: func(ctx context.Context, req sdk.PutRequest) (sdk.PutResult, error) {
				req.IfAbsent = false
				return mem.Put(ctx, req)
			}}
		}, [5]RightState{RightOK, RightOK, RightOK, RightOK, RightFailed}, "ignores the condition"},
		{"Exists is answered, and the object overwritten", func(mem *sdktest.Mem) odd {
			return odd{put: func(ctx context.Context, req sdk.PutRequest) (sdk.PutResult, error) {
				_, taken := mem.Content(req.Key)
				asked := req.IfAbsent
				req.IfAbsent = false
				if res, err := mem.Put(ctx, req); err != nil || !taken || !asked {
					return res, err
				}
				return sdk.PutResult{}, sdk.Exists
			}}
		}, [5]RightState{RightOK, RightOK, RightOK, RightOK, RightFailed}, "yet its content is stored"},
		{"success is answered, and the first object kept", func(mem *sdktest.Mem) odd {
			return odd{put: func(ctx context.Context, req sdk.PutRequest) (sdk.PutResult, error) {
				res, err := mem.Put(ctx, req)
				if errors.Is(err, sdk.Exists) {
					err = nil
				}
				return res, err
			}}
		}, [5]RightState{RightOK, RightOK, RightOK, RightOK, RightFailed}, "was taken"},
		{"IfAbsent cannot be done", func(mem *sdktest.Mem) odd {
			return odd{put: func(ctx context.Context, req sdk.PutRequest) (sdk.PutResult, error) {
				if req.IfAbsent {
					return sdk.PutResult{}, code(sdk.Unsupported)
				}
				return mem.Put(ctx, req)
			}}
		}, [5]RightState{RightOK, RightOK, RightOK, RightOK, RightFailed}, "not supported"},
		{"IfAbsent is denied", func(mem *sdktest.Mem) odd {
			return odd{put: func(ctx context.Context, req sdk.PutRequest) (sdk.PutResult, error) {
				if req.IfAbsent {
					return sdk.PutResult{}, code(sdk.PermissionDenied)
				}
				return mem.Put(ctx, req)
			}}
		}, [5]RightState{RightOK, RightOK, RightOK, RightOK, RightDenied}, "permission denied"},
		{"an absent key is said to exist", func(mem *sdktest.Mem) odd {
			return odd{put: func(ctx context.Context, req sdk.PutRequest) (sdk.PutResult, error) {
				if req.IfAbsent {
					return sdk.PutResult{}, sdk.Exists
				}
				return mem.Put(ctx, req)
			}}
		}, [5]RightState{RightOK, RightOK, RightOK, RightOK, RightFailed}, "and it does not"},
		{"every put but a conditional one is denied", func(mem *sdktest.Mem) odd {
			return odd{put: func(ctx context.Context, req sdk.PutRequest) (sdk.PutResult, error) {
				if !req.IfAbsent {
					return sdk.PutResult{}, code(sdk.PermissionDenied)
				}
				return mem.Put(ctx, req)
			}}
		}, [5]RightState{RightOK, RightOK, RightOK, RightOK, RightOK}, ""},
		{"writing is denied", func(*sdktest.Mem) odd {
			return odd{put: func(context.Context, sdk.PutRequest) (sdk.PutResult, error) {
				return sdk.PutResult{}, code(sdk.PermissionDenied)
			}}
		}, [5]RightState{RightOK, RightDenied, RightOK, RightUnknown, RightDenied}, "AccessDenied"},
		{"reading is denied", func(*sdktest.Mem) odd {
			return odd{get: func(context.Context, sdk.GetRequest) (sdk.GetResult, error) {
				return sdk.GetResult{}, code(sdk.PermissionDenied)
			}}
		}, [5]RightState{RightDenied, RightOK, RightOK, RightOK, RightUnknown}, "nothing can be proven absent"},
		{"an absent object is answered with 403", func(mem *sdktest.Mem) odd { // CASES A71
			return odd{get: func(ctx context.Context, req sdk.GetRequest) (sdk.GetResult, error) {
				res, err := mem.Get(ctx, req)
				if isNotFound(err) {
					err = code(sdk.PermissionDenied)
				}
				return res, err
			}}
		}, [5]RightState{RightDenied, RightOK, RightOK, RightOK, RightOK}, "nothing can be proven absent"},
		{"the range is ignored", func(mem *sdktest.Mem) odd { // CASES A73
			return odd{get: func(ctx context.Context, req sdk.GetRequest) (sdk.GetResult, error) {
				return mem.Get(ctx, sdk.GetRequest{Key: req.Key, Length: -1})
			}}
		}, [5]RightState{RightFailed, RightOK, RightOK, RightOK, RightOK}, "breaks its contract"},
		{"the range begins elsewhere", func(mem *sdktest.Mem) odd {
			return odd{get: func(ctx context.Context, req sdk.GetRequest) (sdk.GetResult, error) {
				if req.Length > 0 {
					req.Offset++
				}
				return mem.Get(ctx, req)
			}}
		}, [5]RightState{RightFailed, RightOK, RightOK, RightOK, RightOK}, "a range"},
		{"other bytes come back", func(mem *sdktest.Mem) odd {
			return odd{get: func(ctx context.Context, req sdk.GetRequest) (sdk.GetResult, error) {
				res, err := mem.Get(ctx, req)
				if err == nil {
					res.Body = io.NopCloser(strings.NewReader(strings.Repeat("?", int(res.Size))))
				}
				return res, err
			}}
		}, [5]RightState{RightFailed, RightOK, RightOK, RightOK, RightUnknown}, "not those that were written"},
		{"the listing lags", func(*sdktest.Mem) odd {
			return odd{list: func(context.Context, sdk.ListRequest) iter.Seq2[sdk.Object, error] {
				return func(func(sdk.Object, error) bool) {}
			}}
		}, [5]RightState{RightOK, RightOK, RightFailed, RightOK, RightOK}, "does not show"},
		{"the listing is out of order", func(mem *sdktest.Mem) odd {
			return odd{list: func(ctx context.Context, req sdk.ListRequest) iter.Seq2[sdk.Object, error] {
				return func(yield func(sdk.Object, error) bool) {
					var all []sdk.Object
					for obj := range mem.List(ctx, req) {
						all = append(all, obj)
					}
					for _, obj := range slices.Backward(all) {
						if !yield(obj, nil) {
							return
						}
					}
				}
			}}
		}, [5]RightState{RightOK, RightOK, RightFailed, RightOK, RightOK}, "breaks its contract"},
		{"the listing tells wrong sizes", func(mem *sdktest.Mem) odd {
			return odd{list: func(ctx context.Context, req sdk.ListRequest) iter.Seq2[sdk.Object, error] {
				return func(yield func(sdk.Object, error) bool) {
					for obj, err := range mem.List(ctx, req) {
						obj.Size++
						if !yield(obj, err) {
							return
						}
					}
				}
			}}
		}, [5]RightState{RightOK, RightOK, RightFailed, RightOK, RightOK}, "bytes, it has"},
		{"listing is denied", func(*sdktest.Mem) odd {
			return odd{list: func(context.Context, sdk.ListRequest) iter.Seq2[sdk.Object, error] {
				return func(yield func(sdk.Object, error) bool) { yield(sdk.Object{}, code(sdk.PermissionDenied)) }
			}}
		}, [5]RightState{RightOK, RightOK, RightDenied, RightOK, RightOK}, "permission denied"},
		{"delete is ignored", func(*sdktest.Mem) odd {
			return odd{delete: func(context.Context, []string) error { return nil }}
		}, [5]RightState{RightOK, RightOK, RightOK, RightFailed, RightOK}, "still there"},
		{"deleting is denied", func(*sdktest.Mem) odd {
			return odd{delete: func(context.Context, []string) error { return code(sdk.PermissionDenied) }}
		}, [5]RightState{RightOK, RightOK, RightOK, RightDenied, RightOK}, "permission denied"},
		{"the credentials are not accepted", func(*sdktest.Mem) odd {
			return odd{get: func(context.Context, sdk.GetRequest) (sdk.GetResult, error) {
				return sdk.GetResult{}, code(sdk.Unauthenticated)
			}}
		}, [5]RightState{RightUnknown, RightUnknown, RightUnknown, RightUnknown, RightUnknown}, "credentials not accepted"},
		{"the store is full", func(*sdktest.Mem) odd {
			return odd{put: func(context.Context, sdk.PutRequest) (sdk.PutResult, error) {
				return sdk.PutResult{}, code(sdk.NoSpace)
			}}
		}, [5]RightState{RightOK, RightUnknown, RightUnknown, RightUnknown, RightUnknown}, "no space left"},
	} {
		t.Run(row.name, func(t *testing.T) {
			mem := sdktest.NewMem()
			target := row.plant(mem)
			target.Mem = mem
			r := probed(t, target, uuid.New())
			w := row.want
			if got, want := said(r), fmt.Sprint(w[0], w[1], w[2], w[3], w[4]); got != want {
				t.Errorf("rights %s, want %s: %+v", got, want, r.Rights)
			}
			text := fmt.Sprintf("%+v", r.Rights)
			if !strings.Contains(text, row.say) {
				t.Errorf("%s does not say %q", text, row.say)
			}
			for _, right := range []Right{r.Read, r.Write, r.List, r.Delete, r.Conditional} {
				if right.State == RightDenied && (right.Code != "PermissionDenied" || right.Provider != "AccessDenied" || right.Hint != "grant it") {
					t.Errorf("a denied right tells %+v", right)
				}
			}
		})
	}
}
