// Package client speaks to the HTTP API of a Cairn host.
//
// It is for programs that drive pipelines: the cairn command line is one of them. A Client keeps no state and starts no goroutine; its
// methods may be called concurrently and end with their ctx. The calls that wait (SyncCheckpoint, CheckpointAndWait) poll, and are made so
// that nothing can leave them waiting for what cannot come any more: a restart of the pipeline, an id that a newer one superseded, a
// failure of an earlier attempt.
package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Client calls one host.
type Client struct {
	base string
	http *http.Client
	// PollEvery is how often the waiting calls look; 100 ms unless set.
	PollEvery time.Duration
}

// New makes a client of the host at base, such as "http://127.0.0.1:7070". A nil httpClient means http.DefaultClient.
func New(base string, httpClient *http.Client) *Client {
	if httpClient == nil {
		httpClient = http.DefaultClient
	}
	return &Client{base: strings.TrimRight(base, "/"), http: httpClient, PollEvery: 100 * time.Millisecond}
}

// Pipelines are all pipelines of the host.
func (c *Client) Pipelines(ctx context.Context) ([]PipelineView, error) {
	return call[[]PipelineView](ctx, c, http.MethodGet, "/v0/pipelines", nil)
}

// Pipeline is one pipeline.
func (c *Client) Pipeline(ctx context.Context, name string) (PipelineView, error) {
	return call[PipelineView](ctx, c, http.MethodGet, path(name, ""), nil)
}

// Stats are the numbers of a pipeline.
func (c *Client) Stats(ctx context.Context, name string) (Stats, error) {
	return call[Stats](ctx, c, http.MethodGet, path(name, "/stats"), nil)
}

// Start asks a stopped or failed pipeline to start.
func (c *Client) Start(ctx context.Context, name string) error {
	return c.post(ctx, name, "/start", nil)
}

// Pause asks for a pause: no steps, while checkpoints and pushes go on.
func (c *Client) Pause(ctx context.Context, name string) error {
	return c.post(ctx, name, "/pause", nil)
}

// Resume ends a pause.
func (c *Client) Resume(ctx context.Context, name string) error {
	return c.post(ctx, name, "/resume", nil)
}

// Stop asks a pipeline to stop; with checkpoint it takes one first, and pushes it where push_on_shutdown says so.
func (c *Client) Stop(ctx context.Context, name string, checkpoint bool) error {
	return c.post(ctx, name, "/stop", url.Values{"checkpoint": {strconv.FormatBool(checkpoint)}})
}

// Adopt lets pushes go to a held target, on top of the history it has.
func (c *Client) Adopt(ctx context.Context, name, target string) error {
	return c.post(ctx, name, "/adopt", url.Values{"target": {target}})
}

// Checkpoints are the local checkpoints, newest last.
func (c *Client) Checkpoints(ctx context.Context, name string) ([]CheckpointView, error) {
	return call[[]CheckpointView](ctx, c, http.MethodGet, path(name, "/checkpoints"), nil)
}

// RemoteCheckpoints are the checkpoints on a target, or on all targets when target is empty; newest last.
func (c *Client) RemoteCheckpoints(ctx context.Context, name, target string) ([]CheckpointView, error) {
	return call[[]CheckpointView](ctx, c, http.MethodGet, path(name, "/checkpoints/remote"), targetQuery(target))
}

// Position is the greatest seq of a source that the live state holds.
func (c *Client) Position(ctx context.Context, name, input, source string) (uint64, error) {
	got, err := call[Position](ctx, c, http.MethodGet, path(name, "/ingress/"+url.PathEscape(input)), url.Values{"source": {source}})
	return got.Seq, err
}

// Ingest sends a batch. With a source and a rising seq, sending it again after a lost answer counts it once. wait is "", "checkpoint" or
// "commit".
func (c *Client) Ingest(ctx context.Context, name, input, source string, seq uint64, wait string, records io.Reader) (Ingested, error) {
	query := url.Values{}
	if source != "" {
		query.Set("source", source)
		query.Set("seq", strconv.FormatUint(seq, 10))
	}
	if wait != "" {
		query.Set("wait", wait)
	}
	var got Ingested
	err := c.ask(ctx, http.MethodPost, path(name, "/ingress/"+url.PathEscape(input)), query, records, &got)
	return got, err
}

// Query streams the rows of a read-only statement to w, as NDJSON.
func (c *Client) Query(ctx context.Context, name, sql string, w io.Writer) error {
	resp, err := c.do(ctx, http.MethodGet, path(name, "/query"), url.Values{"sql": {sql}}, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(w, resp.Body); err != nil {
		return fmt.Errorf("read rows: %w", err)
	}
	if broken := resp.Trailer.Get("X-Cairn-Error"); broken != "" {
		return fmt.Errorf("the answer broke off: %s", broken)
	}
	return nil
}

func path(pipeline, rest string) string { return "/v0/pipelines/" + url.PathEscape(pipeline) + rest }

func targetQuery(target string) url.Values {
	if target == "" {
		return nil
	}
	return url.Values{"target": {target}}
}

func (c *Client) post(ctx context.Context, name, rest string, query url.Values) error {
	resp, err := c.do(ctx, http.MethodPost, path(name, rest), query, nil)
	if err != nil {
		return err
	}
	finish(resp)
	return nil
}

func call[T any](ctx context.Context, c *Client, method, path string, query url.Values) (T, error) {
	var got T
	err := c.ask(ctx, method, path, query, nil, &got)
	return got, err
}

// ask sends a request and reads its answer.
func (c *Client) ask(ctx context.Context, method, path string, query url.Values, body io.Reader, into any) error {
	resp, err := c.do(ctx, method, path, query, body)
	if err != nil {
		return err
	}
	defer finish(resp)
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
		return fmt.Errorf("decode answer of %s: %w", path, err)
	}
	return nil
}

// finish ends an answer that has been taken and reads what little is left of it, or its connection could not be used again. A connection
// that breaks there takes nothing from the answer.
func finish(resp *http.Response) {
	_, _ = io.CopyN(io.Discard, resp.Body, maxUnread)
	_ = resp.Body.Close()
}

// do sends a request and turns every answer but a success into an *Error.
func (c *Client) do(ctx context.Context, method, path string, query url.Values, body io.Reader) (*http.Response, error) {
	address := c.base + path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, method, address, body)
	if err != nil {
		return nil, fmt.Errorf("call host: %w", err)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("call host: %w", err)
	}
	if resp.StatusCode/100 == 2 {
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, answered(resp)
}

// maxUnread bounds what is read of an answer that is not a success, or that nobody wants: a proxy's error page can be of any size.
const maxUnread = 64 << 10

func answered(resp *http.Response) error {
	answer := &Error{}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxUnread))
	if err = errors.Join(err, json.Unmarshal(text, answer)); err != nil {
		answer = &Error{} // not one of our hosts' answers: the status is all that is known
	}
	answer.Status = resp.StatusCode
	if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil {
		answer.RetryAfter = time.Duration(seconds) * time.Second
	}
	return answer
}
