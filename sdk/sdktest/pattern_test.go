package sdktest

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestAPatternIsTheSameHoweverItIsRead(t *testing.T) {
	for _, size := range []int64{0, 1, 7, 8, 9, 4097} {
		p := pattern{size, 3}
		want := content(int(size), 3)
		if err := iotest.TestReader(io.NewSectionReader(p, 0, size), want); err != nil {
			t.Errorf("%d bytes: %v", size, err)
		}
		for off := range size {
			part := make([]byte, min(11, size-off))
			if n, err := p.ReadAt(part, off); n != len(part) || err != nil || !bytes.Equal(part, want[off:off+int64(n)]) {
				t.Errorf("%d bytes at %d of %d: %d, %v", len(part), off, size, n, err)
			}
		}
	}
	if bytes.Equal(content(100, 1), content(100, 2)) || bytes.Equal(content(101, 1)[:100], content(100, 1)) {
		t.Error("two patterns are alike")
	}
}

func TestStreamsThatDifferAreToldApartByWhere(t *testing.T) {
	long := strings.Repeat("0123456789abcdef", 20_000)
	for _, c := range []struct{ name, have, want, says string }{
		{"the same", long, long, ""},
		{"both empty", "", "", ""},
		{"one is short", long[:300_000], long, "ends at byte 300000; want 320000"},
		{"one is long", long + "x", long, "ends at byte 320001; want 320000"},
		{"a byte is another", long[:200_000] + "x" + long[200_001:], long, "not what was stored, in the 131072 bytes from byte 131072 on"},
		{"one is a whole frame", long[:128<<10], long, "ends at byte 131072"},
	} {
		err := sameBytes(iotest.HalfReader(strings.NewReader(c.have)), strings.NewReader(c.want))
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
