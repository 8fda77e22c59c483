package checkpoint

import (
	"bytes"
	"testing"

	"github.com/google/uuid"
)

// FuzzManifestBody: a checkpoint.json whose sum is right and whose body is anything is refused, or is written and read back as the same.
func FuzzManifestBody(f *testing.F) {
	f.Add([]byte(`{"id":"01a233a6-1345-7524-8486-8cfb73620fa4","step":1,"created":"2026-01-02T12:00:00Z","incarnation":"01a233a6-1345-7524-8486-8cfb73620fa5",` +
		`"circuit":{"kind":"sql","fingerprint":"0102030000000000000000000000000000000000000000000000000000000000"},` +
		`"history":[{"lineage":"07000000-0000-0000-0000-000000000000","up_to":1}],"files":[{"path":"a","size":0,"mode":"0640","chunks":[]}]}`))
	f.Add([]byte(`{}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		frame := append([]byte(frameStart+sumOf(body)+frameBody), append(bytes.Clone(body), frameEnd...)...)
		m, err := decodeManifest("checkpoint.json", frame)
		if err != nil {
			return
		}
		first, err := encodeManifest(m)
		if err != nil {
			t.Fatalf("%q is read but cannot be written: %v", body, err)
		}
		back, err := decodeManifest("checkpoint.json", first)
		if err != nil {
			t.Fatalf("%q cannot be read back: %v", first, err)
		}
		if again, err := encodeManifest(back); err != nil || !bytes.Equal(first, again) {
			t.Fatalf("%q is written again as %q, %v", first, again, err)
		}
	})
}

// FuzzManifestFile: bytes of any kind in the place of checkpoint.json or pipeline.json do no harm.
func FuzzManifestFile(f *testing.F) {
	sealed, err := sealJSON(Pipeline{ID: uuid.UUID{1}, Desired: Running})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(sealed)
	f.Add([]byte(`{"format":2}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var p Pipeline
		if err := openJSON("pipeline.json", data, &p); err == nil {
			if _, err := sealJSON(p); err != nil {
				t.Fatalf("%q is read but cannot be written: %v", data, err)
			}
		}
		_, _ = decodeManifest("checkpoint.json", data) // it may refuse them; it must not panic
	})
}
