package host

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/cairnsync/cairn/core/api"
	"github.com/cairnsync/cairn/core/checkpoint"
	"github.com/cairnsync/cairn/core/circuit"
	"github.com/cairnsync/cairn/core/sqlcircuit"
	"github.com/cairnsync/cairn/sdk/client"
)

// Ingest hands a batch to the circuit.
func (p *pipeline) Ingest(ctx context.Context, input string, b circuit.Batch) (circuit.IngestResult, error) {
	r, in, err := p.ingester(input)
	if err != nil {
		return circuit.IngestResult{}, err
	}
	p.mu.Lock()
	paused := p.desired == checkpoint.Paused
	p.mu.Unlock()
	if paused {
		return circuit.IngestResult{}, notRunning(p.cfg.Name, "it is paused")
	}
	result, err := in.Ingest(ctx, input, b)
	result.Step += r.offset
	return result, p.dataError(err)
}

// Position asks the circuit where a source resumes.
func (p *pipeline) Position(ctx context.Context, input, source string) (uint64, error) {
	_, in, err := p.ingester(input)
	if err != nil {
		return 0, err
	}
	seq, err := in.Position(ctx, input, source)
	return seq, p.dataError(err)
}

func (p *pipeline) ingester(input string) (*run, circuit.Ingester, error) {
	r, err := p.current()
	if err != nil {
		return nil, nil, err
	}
	in, ok := r.circuit.(circuit.Ingester)
	if !ok {
		return nil, nil, api.Errorf(http.StatusNotFound, client.CodeInputNotFound, "pipeline %q takes no records over HTTP, so it has no input %q", p.cfg.Name, input)
	}
	return r, in, nil
}

// Query asks the circuit's live state.
func (p *pipeline) Query(ctx context.Context, text string) (api.Rows, error) {
	r, err := p.current()
	if err != nil {
		return nil, err
	}
	q, ok := r.circuit.(circuit.Querier)
	if !ok {
		return nil, api.Errorf(http.StatusBadRequest, client.CodeBadQuery, "the circuit of pipeline %q answers no queries", p.cfg.Name)
	}
	rows, err := q.Query(ctx, text)
	return rows, p.dataError(err)
}

// dataError gives the circuit's refusals their place in the API.
func (p *pipeline) dataError(err error) error {
	answers := []struct {
		is     error
		status int
		code   string
		again  time.Duration
	}{
		{sqlcircuit.ErrUnknownInput, http.StatusNotFound, client.CodeInputNotFound, 0},
		{sqlcircuit.ErrTooLarge, http.StatusRequestEntityTooLarge, client.CodeTooLarge, 0},
		{sqlcircuit.ErrFull, http.StatusTooManyRequests, client.CodeFull, time.Second},
		{circuit.ErrNoSpace, http.StatusServiceUnavailable, client.CodeNoSpace, 5 * time.Second},
		{sqlcircuit.ErrBadFormat, http.StatusBadRequest, client.CodeBadRequest, 0},
		{sqlcircuit.ErrMediaType, http.StatusUnsupportedMediaType, client.CodeMediaType, 0},
		{sqlcircuit.ErrBadQuery, http.StatusBadRequest, client.CodeBadQuery, 0},
		{sqlcircuit.ErrQueryTime, http.StatusGatewayTimeout, client.CodeBadQuery, 0},
		{sqlcircuit.ErrNotRunning, http.StatusServiceUnavailable, client.CodeNotRunning, time.Second},
		{sqlcircuit.ErrInputStopped, http.StatusServiceUnavailable, client.CodeNotRunning, time.Second},
	}
	for _, a := range answers {
		if errors.Is(err, a.is) {
			if a.is == sqlcircuit.ErrInputStopped {
				err = fmt.Errorf("%w (%s)", err, begunAnew(p.cfg.Name))
			}
			return api.Errorf(a.status, a.code, "pipeline %q: %v", p.cfg.Name, err).After(a.again)
		}
	}
	return p.removed(err)
}

// removed tells a storage path that was removed under the running host from any other trouble.
func (p *pipeline) removed(err error) error {
	if p.dir == nil {
		return err
	}
	return checkpoint.ExplainRemoved(p.cfg.Backend.Path, err)
}
