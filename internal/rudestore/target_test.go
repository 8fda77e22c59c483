package rudestore

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/cairnsync/cairn/sdk"
)

// sin is a mistake that real plugins make.
type sin string

const (
	retries   sin = "it tries again by itself"
	trusting  sin = "it takes a status of 200 for success"
	follows   sin = "it follows redirects"
	guessing  sin = "it takes 403 and any 404 for an absent key"
	deaf      sin = "it does not look at its context"
	careless  sin = "it ends a listing where there is no token"
	lossy     sin = "it takes the end of a connection for the end of a body"
	wordless  sin = "it forgets Retry-After and the vendor's words"
	rereading sin = "it reads a body for its digest, and again to send it"
	blind     sin = "it does not look whether a create that was broken off met an object"
	eager     sin = "it takes any conflict for an object that exists"
)

// bare is a small S3 target over net/http, right in all but its sin.
type bare struct {
	server Server
	client *http.Client
	sin    sin
}

var _ sdk.Target = (*bare)(nil)

func newBare(server Server, s sin) *bare {
	client := &http.Client{Transport: &http.Transport{DisableCompression: true}}
	if s != follows {
		client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	}
	return &bare{server: server, client: client, sin: s}
}

func (b *bare) Put(ctx context.Context, req sdk.PutRequest) (sdk.PutResult, error) {
	sum := req.Body.SHA256()
	if b.sin == rereading {
		for range 2 {
			if _, err := io.Copy(io.Discard, req.Body.Reader()); err != nil {
				return sdk.PutResult{}, err
			}
		}
	}
	header := http.Header{"X-Amz-Content-Sha256": {hex.EncodeToString(sum[:])}}
	if req.IfAbsent {
		header.Set("If-None-Match", "*")
	}
	var body bytes.Buffer
	if _, err := io.Copy(&body, req.Body.Reader()); err != nil {
		return sdk.PutResult{}, err
	}
	res, text, err := b.ask(ctx, http.MethodPut, "/"+req.Key, header, body.Bytes())
	switch {
	case req.IfAbsent && err != nil && (strings.Contains(err.Error(), "Conditional") || strings.Contains(err.Error(), "Precondition Failed") || errors.Is(err, errUnsent) && b.sin != blind):
		_, _, lookErr := b.ask(ctx, http.MethodGet, "/"+req.Key, nil, nil)
		if lookErr == nil || b.sin == eager {
			return sdk.PutResult{}, &sdk.Error{Code: sdk.Exists, Err: errors.New("there is one")}
		}
		return sdk.PutResult{}, err
	case err != nil:
		return sdk.PutResult{}, err
	case b.sin != trusting && res.Header.Get("ETag") == "":
		return sdk.PutResult{}, &sdk.Error{Code: sdk.Unavailable, Err: fmt.Errorf("no ETag in %q", text)}
	}
	return sdk.PutResult{Version: res.Header.Get("ETag")}, nil
}

func (b *bare) Get(ctx context.Context, req sdk.GetRequest) (sdk.GetResult, error) {
	header := http.Header{}
	if req.Offset != 0 || req.Length >= 0 {
		header.Set("Range", fmt.Sprintf("bytes=%d-", req.Offset))
		if req.Length >= 0 {
			header.Set("Range", fmt.Sprintf("bytes=%d-%d", req.Offset, req.Offset+req.Length-1))
		}
	}
	_, text, err := b.ask(ctx, http.MethodGet, "/"+req.Key, header, nil)
	if err != nil {
		return sdk.GetResult{}, err
	}
	return sdk.GetResult{Body: io.NopCloser(bytes.NewReader(text)), Size: int64(len(text))}, nil
}

func (b *bare) List(ctx context.Context, req sdk.ListRequest) iter.Seq2[sdk.Object, error] {
	return func(yield func(sdk.Object, error) bool) {
		for query := (url.Values{"list-type": {"2"}, "prefix": {req.Prefix}, "start-after": {req.StartAfter}}); query != nil; {
			page, err := b.page(ctx, query)
			if err != nil {
				yield(sdk.Object{}, err)
				return
			}
			for _, row := range page.Contents {
				modified, _ := time.Parse(time.RFC3339, row.LastModified)
				if !yield(sdk.Object{Key: row.Key, Size: int64(row.Size), Modified: modified}, nil) {
					return
				}
			}
			query.Set("continuation-token", page.NextContinuationToken)
			if !page.IsTruncated || page.NextContinuationToken == "" {
				query = nil
			}
		}
	}
}

func (b *bare) page(ctx context.Context, query url.Values) (s3List, error) {
	var page s3List
	_, text, err := b.ask(ctx, http.MethodGet, "?"+query.Encode(), nil, nil)
	if err != nil {
		return page, err
	}
	err = xml.Unmarshal(text, &page)
	switch {
	case b.sin == trusting:
		return page, nil
	case err != nil:
		return page, &sdk.Error{Code: sdk.Unavailable, Err: err}
	case b.sin != careless && page.IsTruncated && page.NextContinuationToken == "":
		return page, &sdk.Error{Code: sdk.Corrupt, Err: errors.New("no token")}
	}
	return page, nil
}

func (b *bare) Delete(ctx context.Context, keys []string) error {
	var wanted strings.Builder
	for _, key := range keys {
		wanted.WriteString("<Object><Key>" + key + "</Key></Object>")
	}
	_, text, err := b.ask(ctx, http.MethodPost, "?delete", nil, []byte("<Delete>"+wanted.String()+"</Delete>"))
	if err != nil || b.sin == trusting {
		return err
	}
	var result struct {
		XMLName xml.Name `xml:"DeleteResult"`
		Error   []s3Fault
	}
	if err := xml.Unmarshal(text, &result); err != nil {
		return &sdk.Error{Code: sdk.Unavailable, Err: err}
	}
	var errs []error
	for _, fault := range result.Error {
		told := b.told(http.StatusForbidden, nil, fault)
		told.Key = fault.Key
		errs = append(errs, told)
	}
	return errors.Join(errs...)
}

// ask makes one call, and one more with new credentials when the old ones have expired.
func (b *bare) ask(ctx context.Context, method, what string, header http.Header, body []byte) (res *http.Response, text []byte, err error) {
	if b.sin == deaf {
		ctx = context.WithoutCancel(ctx)
	}
	for attempt := 1; ; attempt++ {
		res, text, err = b.once(ctx, method, what, header, body)
		refresh := attempt == 1 && b.server.AccessKey == "" && err != nil && strings.Contains(err.Error(), "expired")
		again := attempt < 3 && b.sin == retries && err != nil && ctx.Err() == nil
		if !refresh && !again {
			return res, text, err
		}
	}
}

func (b *bare) once(ctx context.Context, method, what string, header http.Header, body []byte) (*http.Response, []byte, error) {
	sending := &counted{ReaderAt: bytes.NewReader(body)}
	req, err := http.NewRequestWithContext(ctx, method, b.server.Endpoint+"/"+b.server.Bucket+what, io.NewSectionReader(sending, 0, int64(len(body))))
	if err != nil {
		return nil, nil, err
	}
	req.ContentLength = int64(len(body))
	if len(body) == 0 {
		req.Body = http.NoBody
	}
	for name, values := range header {
		req.Header[name] = values
	}
	res, err := b.client.Do(req)
	if err != nil && sending.bytes.Load() < int64(len(body)) {
		err = errors.Join(err, errUnsent)
	}
	if err != nil {
		return nil, nil, lost(ctx, err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil && b.sin != lossy {
		return nil, nil, lost(ctx, err)
	}
	if res.StatusCode/100 == 2 {
		return res, text, nil
	}
	var said s3Fault
	_ = xml.Unmarshal(text, &said) // an error without words has a status
	return nil, nil, b.told(res.StatusCode, res.Header, said)
}

var errUnsent = errors.New("a part of the body was never sent")

func lost(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return &sdk.Error{Code: sdk.Cancelled, Err: err}
	case errors.Is(err, io.ErrUnexpectedEOF) && !strings.Contains(err.Error(), "http"): // of a body, not of a reply's head
		return &sdk.Error{Code: sdk.Corrupt, Err: err}
	}
	return &sdk.Error{Code: sdk.Unavailable, Err: err}
}

// told is the table of errors.
func (b *bare) told(status int, header http.Header, said s3Fault) *sdk.Error {
	codes := map[string]sdk.Code{
		"NoSuchKey": sdk.NotFound, "PreconditionFailed": sdk.Exists, "InvalidRange": sdk.Corrupt, "BadDigest": sdk.Corrupt,
		"NoSuchBucket": sdk.InvalidConfig, "PermanentRedirect": sdk.InvalidConfig, "SlowDown": sdk.Throttled, "TooManyRequests": sdk.Throttled,
		"AccessDenied": sdk.PermissionDenied, "SignatureDoesNotMatch": sdk.Unauthenticated, "ExpiredToken": sdk.Unauthenticated,
		"NotImplemented": sdk.Unsupported,
	}
	if said.Code == "" { // a page, and not the store
		said.Code = http.StatusText(status)
	}
	code, ok := codes[said.Code]
	if !ok {
		code = sdk.Unavailable
	}
	if b.sin == guessing && (status == http.StatusForbidden || status == http.StatusNotFound) {
		code = sdk.NotFound
	}
	told := &sdk.Error{Code: code, Err: errors.New(said.Code + ": " + said.Message)}
	if b.sin != wordless {
		seconds, _ := strconv.Atoi(header.Get("Retry-After")) // absent: 0
		told.Provider, told.RetryAfter = said.Code, time.Duration(seconds)*time.Second
	}
	return told
}
