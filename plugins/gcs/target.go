package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"cloud.google.com/go/storage"
	"gocloud.dev/blob/gcsblob"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"

	"github.com/cairnsync/cairn/sdk"
	"github.com/cairnsync/cairn/sdk/blobtarget"
)

// target is a bucket.
type target struct {
	sdk.Target // of blobtarget, over the hooks below
	client     *storage.Client
	tokens     *tokens // nil = anonymous
	base       *http.Transport
}

var (
	_ sdk.Target = (*target)(nil)
	_ io.Closer  = (*target)(nil)
)

// open makes the client. It does no network I/O, nor does it read credentials: the first request finds out.
func open(ctx context.Context, cfg Config, now func() time.Time) (*target, error) {
	return assemble(ctx, cfg, newTransport(), now)
}

func assemble(ctx context.Context, cfg Config, base *http.Transport, now func() time.Time) (*target, error) {
	endpoint, err := cfg.endpoint()
	if err != nil {
		return nil, err
	}
	t := &target{base: base}
	if endpoint.Scheme == "https" {
		authority := &http.Client{Transport: t.base, Timeout: fetchTimeout}
		t.tokens = newTokens(ctx, cfg.CredentialsFile, authority, now)
	}
	t.client, err = newClient(ctx, endpoint.String(), &transport{base: t.base, tokens: t.tokens})
	if err != nil {
		return nil, err
	}
	bucket, err := gcsblob.OpenBucket(ctx, nil, cfg.Bucket, &gcsblob.Options{Client: t.client})
	if err != nil {
		return nil, err
	}
	put := putter{bucket: t.client.Bucket(cfg.Bucket), class: cfg.StorageClass, repeat: t.tokens != nil}
	t.Target = blobtarget.New(bucket, blobtarget.Hooks{Put: put.put, BeforeList: beforeList, Error: explain})
	return t, nil
}

// newClient is Google's client without what it does unasked: it looks for no credentials, obeys no environment (which an explicit endpoint
// overrules), follows no redirect, repeats no request and reports no metrics. Reads go through the JSON API, whose errors have reasons.
func newClient(ctx context.Context, endpoint string, through http.RoundTripper) (*storage.Client, error) {
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	client, err := storage.NewClient(ctx,
		option.WithHTTPClient(&http.Client{Transport: through, CheckRedirect: stay}),
		option.WithEndpoint(endpoint+"/storage/v1/"),
		option.WithoutAuthentication(),
		storage.WithJSONReads(),
		storage.WithDisabledClientMetrics(),
	)
	if err != nil {
		return nil, err
	}
	client.SetRetry(storage.WithPolicy(storage.RetryNever))
	return client, nil
}

// Get opens an object or a range of it.
func (t *target) Get(ctx context.Context, req sdk.GetRequest) (sdk.GetResult, error) {
	return t.Target.Get(withRead(ctx), req)
}

// Close ends what may be left of a fetched token, and the idle connections. Calls may still be made over http.
func (t *target) Close() error {
	if t.tokens != nil {
		t.tokens.Close()
	}
	err := errors.Join(t.Target.(io.Closer).Close(), t.client.Close()) // of blobtarget
	t.base.CloseIdleConnections()
	return err
}

// putter writes objects.
type putter struct {
	bucket *storage.BucketHandle
	class  string // "" = what the bucket says
	repeat bool   // once, when the token is refused
}

// put writes once, and once more when the token was refused: the transport has thrown it away by then. It is the only retry in this
// plugin, and only then the body is read a second time.
func (p putter) put(ctx context.Context, req sdk.PutRequest) (sdk.PutResult, error) {
	res, err := p.write(ctx, req)
	var answer *googleapi.Error
	if p.repeat && errors.As(err, &answer) && answer.Code == http.StatusUnauthorized {
		res, err = p.write(ctx, req)
	}
	return res, existed(req, err)
}

// write is one request, from the body to the connection without a buffer between. The store checks the CRC32C on arrival; the end of a body that
// fails its SHA-256 is withheld. Closing the writer is what completes an object, so every failure cancels it first.
func (p putter) write(ctx context.Context, req sdk.PutRequest) (sdk.PutResult, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w := p.writer(ctx, req)
	if err := blobtarget.Copy(ctx, w, req.Body); err != nil {
		cancel()
		_ = w.Close() // waits for the request's end; its error only tells that it was cancelled
		return sdk.PutResult{}, err
	}
	if err := w.Close(); err != nil {
		return sdk.PutResult{}, err
	}
	return stored(req, w.Attrs())
}

func (p putter) writer(ctx context.Context, req sdk.PutRequest) *storage.Writer {
	object := p.bucket.Object(req.Key)
	if req.IfAbsent {
		object = object.If(storage.Conditions{DoesNotExist: true})
	}
	w := object.NewWriter(ctx)
	w.ChunkSize = 0 // else a buffer of 16 MiB each
	w.ContentType = "application/octet-stream"
	w.CRC32C, w.SendCRC32C = req.Body.CRC32C(), true
	w.StorageClass = p.classOf(req.Class)
	return w
}

// classOf leaves everything to the bucket when the operator chose no class; with one, metadata is always hot.
func (p putter) classOf(class sdk.Class) string {
	if p.class == "" || class == sdk.ClassBulk {
		return p.class
	}
	return "STANDARD"
}

// stored compares what the store says it has stored: an answer of 200 may hold anything.
func stored(req sdk.PutRequest, attrs *storage.ObjectAttrs) (sdk.PutResult, error) {
	if attrs == nil || attrs.Name != req.Key || attrs.Size != req.Body.Size() {
		return sdk.PutResult{}, &sdk.Error{Code: sdk.Unavailable, Err: errors.New("the store answers a success that does not name the object"), Hint: hintEndpoint}
	}
	return sdk.PutResult{Version: fmt.Sprint(attrs.Generation)}, nil
}

// existed reads a generation that is not 0 as Exists. The policy of an organization is answered with 412 too, and so do some proxies refuse:
// neither says anything of an object.
func existed(req sdk.PutRequest, err error) error {
	var answer *googleapi.Error
	if !req.IfAbsent || !errors.As(err, &answer) || answer.Code != http.StatusPreconditionFailed {
		return err
	}
	told := explain(err)
	if reason(answer) == "conditionNotMet" {
		told.Code, told.Hint = sdk.Exists, ""
	}
	return told
}

// beforeList begins a listing at its start, which is left out by blobtarget, and asks for what is needed of each object.
func beforeList(req sdk.ListRequest) func(as func(any) bool) error {
	return func(as func(any) bool) error {
		var query *storage.Query
		if !as(&query) {
			return nil
		}
		query.StartOffset = req.StartAfter
		query.Projection = storage.ProjectionNoACL
		return query.SetAttrSelection([]string{"Name", "Size", "Updated"})
	}
}
