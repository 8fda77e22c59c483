package host

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/klauspost/compress/zstd"

	"github.com/cairnsync/cairn/sdk/client"
)

func TestADataFolderTooDeepForSocketsIsAFaultOfTheConfiguration(t *testing.T) {
	w := newWorld(t)
	deep := filepath.Join("data", strings.Repeat("d", 100))
	file := w.path("cairn.hcl")
	must(t, os.WriteFile(file, []byte(w.hcl(conf{data: deep})), 0o600))
	_, found := Load(context.Background(), file, LoadOptions{Now: time.Now})
	text := found.Error()
	for _, part := range []string{"cairn.hcl:3:", "data_dir cannot be", "bytes, at most"} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in:\n%s", part, text)
		}
	}
}

func TestUnderRequireChecksumsTheLineToAddIsGivenAndWorks(t *testing.T) {
	w := newWorld(t)
	file := w.path("cairn.hcl")
	check := func(block string) (text string, bad bool) {
		hcl := strings.Replace(w.hcl(conf{more: block}), "host {", "host {\n  require_checksums = true", 1)
		must(t, os.WriteFile(file, []byte(hcl), 0o600))
		_, found := Load(context.Background(), file, LoadOptions{Now: time.Now})
		return found.Error(), found.HasErrors()
	}
	text, bad := check("")
	_, line, ok := strings.Cut(text, `put this line into the block plugin "file": `)
	if !bad || !ok {
		t.Fatalf("no line to add:\n%s", text)
	}
	line, _, _ = strings.Cut(line, "\n")
	if text, bad := check("plugin \"file\" {\n" + line + "\n}\n"); bad {
		t.Errorf("with the line:\n%s", text)
	}
	wrong := `checksum = "sha256:` + strings.Repeat("0", 64) + `"`
	if text, bad := check("plugin \"file\" {\n" + wrong + "\n}\n"); !bad || !strings.Contains(text, strings.TrimPrefix(strings.Trim(line, `"`), `checksum = "`)) {
		t.Errorf("with a wrong one:\n%s", text)
	}
}

// plantSecrets builds the leaky plugin and answers the blocks of a target that uses it.
func (w *world) plantSecrets(key, token string) string {
	w.t.Helper()
	path := w.path("cairn-plugin-leaky")
	out, err := exec.Command("go", "build", "-o", path, "./testdata/leaky").CombinedOutput()
	if err != nil {
		w.t.Fatalf("build plugin: %v\n%s", err, out)
	}
	return fmt.Sprintf("plugin \"leaky\" {\n  path = %q\n  dev  = true\n  env  = { API_TOKEN = %q }\n}\ntarget \"leak\" {\n  plugin = \"leaky\"\n  config {\n    key = %q\n  }\n}\n", path, token, key)
}

func TestAPlantedSecretIsSeenInNoLogStatusAnswerOrFile(t *testing.T) {
	const key, token = "Tr0ub4dor&3-/+horse", "t0ken-of-the-environment"
	w := newWorld(t)
	file := w.path("cairn.hcl")
	// The other target works, so that what is stored can be searched.
	hcl := w.hcl(conf{more: w.plantSecrets(key, token), sync: "    sync \"leak\" {\n      push_interval = \"100ms\"\n    }\n" + keepTwo, checkpoint: "100ms"})
	must(t, os.WriteFile(file, []byte(hcl), 0o600))
	cfg, found := Load(t.Context(), file, LoadOptions{Now: time.Now})
	if found.HasErrors() {
		t.Fatal(found)
	}
	h := w.run(cfg, func(opts *Options) { opts.Log.SetLevel(hclog.Trace) }).up()
	h.insert(1, 10)
	h.storeEverything("t")
	seen := map[string]string{}
	h.until("the plugin has died of its secret", func() bool {
		for _, path := range []string{"/v0/pipelines/p", "/v0/pipelines", "/v0/pipelines/p/checkpoints", "/v0/pipelines/p/jobs", "/v0/health", "/metrics", "/"} {
			_, _, answer := h.call("GET", path, "")
			seen[path] += answer
		}
		return strings.Contains(h.log.String(), "died of") && strings.Contains(seen["/v0/pipelines/p"], "exited with code 2")
	})
	h.stop()
	seen["log"] = h.log.String()
	addFiles(t, seen, w.path("data"))
	addFiles(t, seen, w.target)
	// What a circuit keeps is its user's, secret or not, and is stored as it is: a row that is found shows that packs are searched too.
	for below, part := range map[string]string{"pack": "row 40804", "commit": "state.db", "epoch": "", "gc": "", "pin": "a note", "FORMAT.json": "", "README.txt": ""} {
		if !holds(seen, filepath.Join(w.target, "p", below), part) {
			t.Errorf("%q was found nowhere below %s, so not all that is stored was searched", part, below)
		}
	}
	for where, text := range seen {
		for _, secret := range []string{key, token, url.QueryEscape(key), base64.StdEncoding.EncodeToString([]byte("user:" + key)), base64.StdEncoding.EncodeToString([]byte(key))} {
			if strings.Contains(text, secret) {
				t.Errorf("%s holds %q", where, secret)
			}
		}
	}
	for _, where := range []string{"log", "/v0/pipelines/p"} {
		if !strings.Contains(seen[where], "••••••") {
			t.Errorf("%s shows nothing masked: the plugin did not leak", where)
		}
	}
}

// storeEverything leaves objects of every kind on a target: commits, packs, an epoch, a pin and a gc object.
func (r *liveHost) storeEverything(target string) {
	r.t.Helper()
	committed := func() *client.Point {
		views := r.view("p").Targets
		return views[slices.IndexFunc(views, func(v client.TargetView) bool { return v.Target == target })].Committed
	}
	for i := range 4 {
		step := r.insert(100*(i+1), 100*(i+1)+10).Step
		r.until("a push to "+target, func() bool { return committed() != nil && committed().Step >= step })
	}
	_, err := r.Pin(r.t.Context(), "p", "for-ever", client.PinOptions{Target: target, Checkpoint: committed().UUID, Note: "a note"})
	must(r.t, err)
	_, err = r.Sweep(r.t.Context(), "p", client.SweepOptions{Target: target})
	must(r.t, err)
}

// holds says whether something that was seen below a path contains part.
func holds(seen map[string]string, below, part string) bool {
	for where, text := range seen {
		if strings.HasPrefix(where, below) && strings.Contains(text, part) {
			return true
		}
	}
	return false
}

// addFiles adds each file below root to seen: as it is and, where it holds anything compressed, that too.
func addFiles(t *testing.T, seen map[string]string, root string) {
	t.Helper()
	must(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		seen[path] = string(content) + uncompressed(content)
		return err
	}))
}

// uncompressed is what the zstd frames in content hold, wherever they begin.
func uncompressed(content []byte) string {
	var out strings.Builder
	frame := []byte{0x28, 0xb5, 0x2f, 0xfd}
	for at := bytes.Index(content, frame); at >= 0; {
		if r, err := zstd.NewReader(bytes.NewReader(content[at:]), zstd.WithDecoderConcurrency(1)); err == nil {
			_, _ = io.Copy(&out, r) // it ends at whatever follows the frames
			r.Close()
		}
		next := bytes.Index(content[at+1:], frame)
		if next < 0 {
			break
		}
		at += 1 + next
	}
	return out.String()
}
