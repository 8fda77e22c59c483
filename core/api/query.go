package api

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/cairnsync/cairn/core/circuit"
)

type queryInput struct {
	PipelineName
	SQL string `query:"sql" required:"true" minLength:"1" doc:"One read-only statement."`
}

// rowsTrailer tells the client of a streamed answer whether it is complete: HTTP has sent its 200 long before.
const rowsTrailer = "X-Cairn-Error"

func (r *routes) query() {
	op := r.operation(http.MethodGet, "/v0/pipelines/{name}/query", "query", "Read the live state; rows as NDJSON objects keyed by column", http.StatusOK)
	op.Responses["200"] = &huma.Response{
		Description: "One JSON object a line. A row {\"error\": …} in the last line, and the trailer " + rowsTrailer + ", say that the answer broke off.",
		Content:     map[string]*huma.MediaType{"application/x-ndjson": {Schema: &huma.Schema{Type: "string"}}},
	}
	act(r, op, func(ctx context.Context, p Pipeline, in *queryInput) (*huma.StreamResponse, error) {
		rows, err := p.Query(ctx, in.SQL)
		if err != nil {
			return nil, err
		}
		return &huma.StreamResponse{Body: func(hctx huma.Context) {
			hctx.SetHeader("Content-Type", "application/x-ndjson")
			hctx.SetHeader("Trailer", rowsTrailer)
			if err := writeRows(hctx.BodyWriter(), rows); err != nil {
				hctx.SetHeader(rowsTrailer, fmt.Sprintf("%q", err.Error()))
			}
		}}, nil
	})
}

// writeRows streams rows. A failure after the first byte can only be told in the stream itself.
func writeRows(w io.Writer, rows Rows) error {
	out := bufio.NewWriter(w)
	for row, err := range rows {
		if err == nil {
			err = writeRow(out, row)
		}
		if err != nil {
			failure, _ := json.Marshal(map[string]string{"error": err.Error()}) // a map of strings always encodes
			_, _ = out.Write(append(failure, '\n'))                             // a bufio.Writer keeps its error for Flush
			_ = out.Flush()                                                     // the first failure is the one to tell
			return err
		}
	}
	return out.Flush()
}

// writeRow keeps the order of the columns, which a map would lose.
func writeRow(w *bufio.Writer, row []circuit.Column) error {
	_ = w.WriteByte('{') // a bufio.Writer keeps its error for Flush
	for i, column := range row {
		name, err := json.Marshal(column.Name)
		if err != nil {
			return fmt.Errorf("encode column name: %w", err)
		}
		value, err := json.Marshal(column.Value)
		if err != nil {
			return fmt.Errorf("encode column %q: %w", column.Name, err)
		}
		if i > 0 {
			_ = w.WriteByte(',')
		}
		_, _ = w.Write(name)
		_ = w.WriteByte(':')
		_, _ = w.Write(value)
	}
	_, err := w.WriteString("}\n")
	return err
}
