package sdk_test

import (
	"context"
	"errors"
	"io"
	"iter"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/cairnsync/cairn/sdk"
)

// answers is a Target that answers what it is told to, and fails the test when it should not have been asked.
type answers struct {
	t       *testing.T
	body    io.Reader
	size    int64
	objects []sdk.Object
	stored  sdk.PutResult
	mayAsk  bool
}

func (a *answers) asked() {
	if !a.mayAsk {
		a.t.Error("the target was asked")
	}
}

func (a *answers) Put(context.Context, sdk.PutRequest) (sdk.PutResult, error) {
	a.asked()
	return a.stored, nil
}

func (a *answers) Get(context.Context, sdk.GetRequest) (sdk.GetResult, error) {
	a.asked()
	if a.body == nil {
		return sdk.GetResult{}, nil
	}
	return sdk.GetResult{Body: io.NopCloser(a.body), Size: a.size}, nil
}

func (a *answers) List(context.Context, sdk.ListRequest) iter.Seq2[sdk.Object, error] {
	return func(yield func(sdk.Object, error) bool) {
		a.asked()
		for _, obj := range a.objects {
			if !yield(obj, nil) {
				return
			}
		}
	}
}

func (a *answers) Delete(context.Context, []string) error {
	a.asked()
	return nil
}

func TestATargetNeverSeesARequestThatBreaksTheContract(t *testing.T) {
	guard := sdk.Guard(&answers{t: t})
	ctx := t.Context()
	var errs []error
	for _, req := range []sdk.PutRequest{
		{Key: "../a", Body: sdk.BytesBody(nil)},
		{Key: "a", Body: sdk.NewBody(strings.NewReader(""), sdk.MaxObject+1, sdk.Sums{})},
		{Key: "a", Body: sdk.NewBody(strings.NewReader(""), -1, sdk.Sums{})},
	} {
		_, err := guard.Put(ctx, req)
		errs = append(errs, err)
	}
	for _, req := range []sdk.GetRequest{
		{Key: "", Length: -1}, {Key: "a", Length: 0}, {Key: "a", Length: -2}, {Key: "a", Offset: -1, Length: 1},
	} {
		_, err := guard.Get(ctx, req)
		errs = append(errs, err)
	}
	for _, req := range []sdk.ListRequest{{Prefix: "a b"}, {StartAfter: "ä"}} {
		for _, err := range guard.List(ctx, req) {
			errs = append(errs, err)
		}
	}
	errs = append(errs, guard.Delete(ctx, []string{"a", "b/"}), guard.Delete(ctx, make([]string, sdk.MaxDelete+1)))
	if len(errs) != 11 {
		t.Fatalf("%d refusals", len(errs))
	}
	for _, err := range errs {
		var e *sdk.Error
		if !errors.As(err, &e) || e.Code != sdk.Unsupported || e.Op == "" {
			t.Errorf("refused with %v", err)
		}
	}
	if err := guard.Delete(ctx, nil); err != nil {
		t.Errorf("delete of nothing: %v", err)
	}
}

// CASES A18
func TestABodyIsHeldToItsDeclaredSize(t *testing.T) {
	cut := errors.New("connection reset")
	for name, c := range map[string]struct {
		body  io.Reader
		size  int64
		fails error
	}{
		"as declared":                     {strings.NewReader("12345"), 5, nil},
		"empty as declared":               {strings.NewReader(""), 0, nil},
		"a byte short":                    {strings.NewReader("1234"), 5, sdk.Corrupt},
		"empty":                           {strings.NewReader(""), 5, sdk.Corrupt},
		"a byte long":                     {strings.NewReader("123456"), 5, sdk.Corrupt},
		"short with data beside the end":  {iotest.DataErrReader(strings.NewReader("1234")), 5, sdk.Corrupt},
		"whole with data beside the end":  {iotest.DataErrReader(strings.NewReader("12345")), 5, nil},
		"cut as net/http reports it":      {io.MultiReader(strings.NewReader("123"), iotest.ErrReader(io.ErrUnexpectedEOF)), 5, sdk.Corrupt},
		"cut with an error of its own":    {io.MultiReader(strings.NewReader("123"), iotest.ErrReader(cut)), 5, cut},
		"an error after all of the bytes": {io.MultiReader(strings.NewReader("12345"), iotest.ErrReader(cut)), 5, cut},
	} {
		for _, wrap := range []func(io.Reader) io.Reader{func(r io.Reader) io.Reader { return r }, iotest.OneByteReader} {
			guard := sdk.Guard(&answers{t: t, body: c.body, size: c.size, mayAsk: true})
			res, err := guard.Get(t.Context(), sdk.GetRequest{Key: "a", Length: -1})
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(wrap(res.Body))
			if !errors.Is(err, c.fails) || c.fails == nil && int64(len(got)) != c.size {
				t.Errorf("%s: %d bytes, %v; want %v", name, len(got), err, c.fails)
			}
			if s, ok := c.body.(*strings.Reader); ok {
				_, _ = s.Seek(0, io.SeekStart)
			} else {
				break
			}
		}
	}
}

func TestAnAnswerThatBreaksTheContractIsCalledThePluginsDefect(t *testing.T) {
	for name, target := range map[string]*answers{
		"neither a body nor an error": {},
		"more than was asked for":     {body: strings.NewReader("123456"), size: 6},
		"a negative size":             {body: strings.NewReader(""), size: -1},
	} {
		target.t, target.mayAsk = t, true
		_, err := sdk.Guard(target).Get(t.Context(), sdk.GetRequest{Key: "a", Offset: 1, Length: 5})
		if err == nil || sdk.CodeOf(err) != sdk.Internal || !strings.Contains(err.Error(), "breaks its contract") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, c := range map[string]struct {
		after   string
		objects []sdk.Object
	}{
		"not below the prefix":  {"", []sdk.Object{{Key: "p/a"}, {Key: "q/b"}}},
		"out of order":          {"", []sdk.Object{{Key: "p/b"}, {Key: "p/a"}}},
		"the same twice":        {"", []sdk.Object{{Key: "p/b"}, {Key: "p/b"}}},
		"before StartAfter":     {"p/m", []sdk.Object{{Key: "p/a"}}},
		"the StartAfter itself": {"p/m", []sdk.Object{{Key: "p/m"}}},
		"foreign, out of order": {"", []sdk.Object{{Key: "p/b b"}, {Key: "p/a"}}},
		"a negative size":       {"", []sdk.Object{{Key: "p/a", Size: -1}}},
	} {
		target := &answers{t: t, mayAsk: true, objects: c.objects}
		var last error
		for _, err := range sdk.Guard(target).List(t.Context(), sdk.ListRequest{Prefix: "p/", StartAfter: c.after}) {
			last = err
		}
		if last == nil || sdk.CodeOf(last) != sdk.Internal || !strings.Contains(last.Error(), "breaks its contract") {
			t.Errorf("%s: %v", name, last)
		}
	}
}

func TestAPutWhoseStoreAttestsAnotherDigestIsCorrupt(t *testing.T) {
	body := sdk.BytesBody([]byte("content"))
	for name, row := range map[string]struct {
		attested [32]byte
		want     error
	}{
		"nothing":        {[32]byte{}, nil},
		"what was sent":  {body.SHA256(), nil},
		"something else": {[32]byte{1}, sdk.Corrupt},
	} {
		guard := sdk.Guard(&answers{t: t, mayAsk: true, stored: sdk.PutResult{SHA256: row.attested}})
		_, err := guard.Put(t.Context(), sdk.PutRequest{Key: "k", Body: body})
		if !errors.Is(err, row.want) || err != nil && (!strings.Contains(err.Error(), "attests") || !strings.Contains(err.Error(), "put k")) {
			t.Errorf("attested is %s: %v", name, err)
		}
	}
}

func TestAForeignObjectIsLeftOutOfAListing(t *testing.T) {
	target := &answers{t: t, mayAsk: true, objects: []sdk.Object{{Key: "a"}, {Key: "a b"}, {Key: "a//c"}, {Key: "b"}, {Key: "b/ä"}, {Key: "c/"}, {Key: "d"}}}
	var got []string
	for obj, err := range sdk.Guard(target).List(t.Context(), sdk.ListRequest{}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, obj.Key)
	}
	if strings.Join(got, " ") != "a b d" {
		t.Errorf("listed %q", got)
	}
}

func TestARangeIsCutAtTheEndOfTheObject(t *testing.T) {
	for _, c := range []struct{ offset, length, size, from, n int64 }{
		{0, -1, 0, 0, 0}, {0, -1, 10, 0, 10}, {0, 10, 10, 0, 10}, {9, 1, 10, 9, 1}, {9, -1, 10, 9, 1}, {5, 100, 10, 5, 5}, {0, 1 << 62, 10, 0, 10},
	} {
		from, n, err := sdk.GetRequest{Key: "a", Offset: c.offset, Length: c.length}.Range(c.size)
		if from != c.from || n != c.n || err != nil {
			t.Errorf("Range of %+v = %d, %d, %v", c, from, n, err)
		}
	}
	for _, c := range []struct{ offset, length, size int64 }{{10, 1, 10}, {10, -1, 10}, {0, 1, 0}, {11, -1, 10}} {
		if _, _, err := (sdk.GetRequest{Key: "a", Offset: c.offset, Length: c.length}).Range(c.size); !errors.Is(err, sdk.Corrupt) {
			t.Errorf("Range of %+v: %v", c, err)
		}
	}
}
