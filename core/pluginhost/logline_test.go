package pluginhost

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/hashicorp/go-hclog"
)

func TestALineOfAPluginIsData(t *testing.T) {
	for _, row := range []struct {
		name, raw string
		level     hclog.Level
		want      string
	}{
		{"an hclog line keeps level, message and pairs", `{"@level":"warn","@message":"slow","@module":"s3","@timestamp":"x","took":"3s"}`, hclog.Warn, `slow module="s3" took="3s"`},
		{"a numeric level is no level", `{"@level":1,"@message":"m"}`, hclog.Debug, "m"},
		{"a numeric message is its text", `{"@level":"info","@message":2}`, hclog.Info, "2"},
		{"a numeric time is dropped", `{"@level":"info","@message":"m","@timestamp":3}`, hclog.Info, "m"},
		{"an object for a message is its text", `{"@message":{"a":[1]}}`, hclog.Debug, `{"a":[1]}`},
		{"values of any type become text", `{"@message":"m","b":null,"c":true,"a":[1,"x"]}`, hclog.Debug, `m a="[1,\"x\"]" b="" c="true"`},
		{"the name of a field is one word", `{"@message":"m","a=1 target=other b\u001b":"c"}`, hclog.Debug, `m a_1_target_other_b_="c"`},
		{"a field does not pass for one of the host's", `{"@message":"m","target":"other","@stream":"x","@@level":"error"}`, hclog.Debug, `m level="error" stream_="x" target_="other"`},
		{"a level of off is not obeyed", `{"@level":"off","@message":"m"}`, hclog.Debug, "m"},
		{"half a JSON line is text", `{"@level":"error","@mess`, hclog.Debug, `{"@level":"error","@mess`},
		{"a JSON array is text", `[1,2]`, hclog.Debug, `[1,2]`},
		{"a level in brackets counts", `[ERROR] no disk`, hclog.Error, `[ERROR] no disk`},
		{"other words in brackets do not", `[main] begins`, hclog.Debug, `[main] begins`},
		{"a panic is an error", `panic: oops`, hclog.Error, `panic: oops`},
		{"control characters are escaped", "a\x1b[2Jb\x00c\rd", hclog.Debug, `a\x1b[2Jb\x00c\rd`},
		{"a newline inside a JSON value stays inside the line", `{"@message":"a\nb"}`, hclog.Debug, `a\nb`},
		{"bytes that are not UTF-8 are replaced", "a\xff\xfeb", hclog.Debug, "a\uFFFDb"},
		{"an empty line is an empty line", "", hclog.Debug, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := (&lineParser{}).parse([]byte(row.raw), false)
			if got.level != row.level || got.String() != row.want {
				t.Errorf("got %v %q, want %v %q", got.level, got.String(), row.level, row.want)
			}
		})
	}
}

func TestTheLinesAfterAPanicAreErrorsToo(t *testing.T) {
	p := &lineParser{}
	for _, raw := range []string{"panic: oops", "", "goroutine 1 [running]:", "main.main()"} {
		if got := p.parse([]byte(raw), false).level; got != hclog.Error {
			t.Errorf("%q is logged at %v", raw, got)
		}
	}
}

func FuzzNoLineOfAPluginHarmsTheHost(f *testing.F) {
	for _, seed := range []string{`{"@level":1}`, `{"@timestamp":[]}`, "[", "[]", "{", "panic: x", "\xff", `{"a":{"b":1}}`, `{"@message":"\ud800"}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		o := newOutput(hclog.New(&hclog.LoggerOptions{Output: io.Discard, Level: hclog.Trace, JSONFormat: true}), nil, time.Now)
		o.stderr(bytes.NewReader(raw))
		for _, line := range o.tail.last(1 << 20) {
			if !utf8.ValidString(line) || strings.IndexFunc(line, func(r rune) bool { return r != '\t' && unicode.IsControl(r) }) >= 0 {
				t.Errorf("%q came through as %q", raw, line)
			}
		}
	})
}

func TestALongLineIsCutAndSaysSo(t *testing.T) {
	o := newOutput(hclog.NewNullLogger(), nil, time.Now)
	o.stderr(strings.NewReader(strings.Repeat("x", 1<<20) + "\nnext\n"))
	lines := o.tail.last(10)
	if len(lines) != 2 || lines[1] != "next" {
		t.Fatalf("%d lines, the last %q", len(lines), lines[len(lines)-1])
	}
	if len(lines[0]) > maxLine+100 || !strings.HasSuffix(lines[0], "… (1032192 more bytes of this line)") {
		t.Errorf("%d bytes, ending %q", len(lines[0]), lines[0][len(lines[0])-50:])
	}
}

func TestTheTailKeepsTheNewest64KiB(t *testing.T) {
	var kept tail
	for i := range 1000 {
		kept.add(strings.Repeat(string(rune('a'+i%26)), 1000))
	}
	lines := kept.last(1000)
	if len(lines) != tailBytes/1000 || kept.size != 1000*len(lines) || lines[len(lines)-1][0] != byte('a'+999%26) {
		t.Errorf("%d lines of %d bytes", len(lines), kept.size)
	}
	if got := kept.last(3); len(got) != 3 || got[2] != lines[len(lines)-1] {
		t.Errorf("the last three are %q", got)
	}
}

func TestOnlyTheFirstHandshakeLineReachesGoPlugin(t *testing.T) {
	o := newOutput(hclog.NewNullLogger(), nil, time.Now)
	r, w := io.Pipe()
	go o.stdout(strings.NewReader("starting up\n{\"@level\":1}\n1|1|unix|/tmp/a|grpc|cert\n1|1|unix|/tmp/evil|grpc|cert\nmore "+strings.Repeat("y", 1<<17)), w)
	got, err := io.ReadAll(r)
	if err != nil || string(got) != "1|1|unix|/tmp/a|grpc|cert\n" {
		t.Errorf("go-plugin reads %q, %v", got, err)
	}
	if lines := o.tail.last(10); len(lines) != 4 || lines[0] != "starting up" || lines[2] != "1|1|unix|/tmp/evil|grpc|cert" {
		t.Errorf("the rest is logged as %d lines: %.200q", len(lines), lines)
	}
}
