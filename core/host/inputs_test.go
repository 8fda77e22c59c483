package host

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/cairnsync/cairn/sdk/client"
)

// following is a pipeline "q" of a followed file.
func following(path string) string {
	return fmt.Sprintf(`pipeline "q" {
  circuit "sql" {
    schema = "CREATE TABLE q (record TEXT)"
    input "in" {
      file {
        path   = %q
        format = "csv"
        follow = true
      }
      apply = "INSERT INTO q VALUES (:record)"
    }
  }
  storage "file" {}
}
`, path)
}

func TestAStoppedInputIsToldByThePipelineWithTheWayOn(t *testing.T) {
	w := newWorld(t)
	path := w.path("in.csv")
	must(t, os.WriteFile(path, []byte("k,n\na,1\nb\n"), 0o600))
	h := w.start(conf{more: following(path)}).up()
	input := func() client.InputStats {
		if inputs := h.view("q").Inputs; len(inputs) == 1 {
			return inputs[0]
		}
		return client.InputStats{}
	}
	h.until("the records are taken", func() bool { return input().Applied == 1 && input().Rejected == 1 })

	must(t, os.WriteFile(path, []byte("k,n\nc,3\n"), 0o600))
	h.until("the input stops", func() bool { return input().Stopped != "" })
	contains(t, input().Stopped, "in.csv: it shrank: all 10 bytes of the file that was read before were taken; put that file back")
	contains(t, input().Remedy, "`cairn pipeline stop q`, then `cairn pipeline start q`")
	status, _, body := h.call(http.MethodGet, "/readyz", "")
	equal(t, "readyz, for the pipeline runs: "+body, status, http.StatusOK)

	must(t, os.WriteFile(path, []byte("k,n\na,1\nb\nc,3\n"), 0o600))
	must(t, h.Stop(t.Context(), "q", true))
	h.until("the pipeline stops", func() bool { return h.view("q").State == "stopped" })
	equal(t, "inputs of a stopped pipeline", len(h.view("q").Inputs), 0)
	must(t, h.Start(t.Context(), "q"))
	h.until("the remedy helps", func() bool { return input().Applied == 2 && input().Stopped == "" })
	var counted strings.Builder
	must(t, h.Query(t.Context(), "q", "SELECT group_concat(record ->> 'k', ' ') AS taken FROM q", &counted))
	equal(t, "records, each once", strings.TrimSpace(counted.String()), `{"taken":"a c"}`)
}

func TestAFileThatIsGoneIsToldByThePipeline(t *testing.T) {
	w := newWorld(t)
	path := w.path("in.csv")
	must(t, os.WriteFile(path, []byte("k,n\na,1\n"), 0o600))
	h := w.start(conf{more: following(path)}).up()
	h.until("the record is taken", func() bool { v := h.view("q"); return len(v.Inputs) == 1 && v.Inputs[0].Applied == 1 })
	must(t, os.Remove(path))
	h.until("the note", func() bool { return h.view("q").Inputs[0].Note == "gone: "+path })
}

func TestABatchOfTheOtherFormatIsAnsweredWithItsRemedy(t *testing.T) {
	w := newWorld(t)
	h := w.start(conf{}).up()
	for _, row := range []struct {
		mediaType string
		status    int
	}{
		{"text/csv", http.StatusUnsupportedMediaType},
		{"application/x-www-form-urlencoded", http.StatusOK}, // what curl sends
		{"application/x-ndjson", http.StatusOK},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.url+ingress, rows(0, 1))
		must(t, err)
		req.Header.Set("Content-Type", row.mediaType)
		resp, err := http.DefaultClient.Do(req)
		must(t, err)
		text, err := io.ReadAll(resp.Body)
		must(t, errors.Join(err, resp.Body.Close()))
		equal(t, row.mediaType, resp.StatusCode, row.status)
		if row.status != http.StatusOK {
			contains(t, string(text), `"error_code":"UnsupportedMediaType"`, "the input takes ndjson: send that as Content-Type application/x-ndjson")
		}
	}
}
