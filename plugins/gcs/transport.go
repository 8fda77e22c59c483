package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"strings"

	"github.com/cairnsync/cairn/sdk"
)

const (
	// idlePerHost keeps a connection for each of the requests that a host makes at once; net/http's default is 2.
	idlePerHost = 64
	bufferSize  = 64 << 10
	// maxListing bounds the answer of a listing: 1,000 objects, of which only name, size and time are asked for.
	maxListing = 4 << 20
)

// newTransport is net/http's: proxies by the standard variables, HTTP/2, SSL_CERT_FILE.
func newTransport() *http.Transport {
	base := http.DefaultTransport.(*http.Transport).Clone() // nobody here replaces it
	base.MaxIdleConns = 0
	base.MaxIdleConnsPerHost = idlePerHost
	base.WriteBufferSize, base.ReadBufferSize = bufferSize, bufferSize
	return base
}

// transport says who we are, and takes from Google's client what it would do on its own: it resumes a read that breaks, and takes an
// error in an answer of success for a success.
type transport struct {
	base   http.RoundTripper
	tokens *tokens // nil = anonymous
}

// RoundTrip sends req. A request without a body is sent once more when its token is refused; one with a body cannot be, see putter.put.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	read, _ := req.Context().Value(readKey{}).(*read)
	if read != nil && read.fault != nil {
		return nil, read.fault
	}
	res, err := t.authorised(req)
	if err != nil || res.StatusCode != http.StatusOK && res.StatusCode != http.StatusPartialContent {
		return res, err
	}
	switch {
	case read != nil:
		res.Body = read.body(res)
	default: // an upload, a page of a listing, a deletion
		return wholeAnswer(res)
	}
	return res, nil
}

func (t *transport) authorised(req *http.Request) (*http.Response, error) {
	if t.tokens == nil {
		return t.base.RoundTrip(req)
	}
	for attempt := 1; ; attempt++ {
		tok, err := t.tokens.get(req.Context())
		if err != nil {
			if req.Body != nil {
				req.Body.Close()
			}
			return nil, err
		}
		res, err := t.base.RoundTrip(withToken(req, tok))
		if err != nil || res.StatusCode != http.StatusUnauthorized {
			return res, err
		}
		t.tokens.refused(tok.value)
		if attempt == 2 || req.Body != nil && req.Body != http.NoBody {
			return res, nil
		}
		res.Body.Close()
	}
}

func withToken(req *http.Request, tok token) *http.Request {
	own := req.Clone(req.Context())
	own.Header.Set("Authorization", "Bearer "+tok.value)
	if tok.project != "" {
		own.Header.Set("X-Goog-User-Project", tok.project)
	}
	return own
}

// wholeAnswer reads an answer of success to its end. Google's client takes an error in one for a page without objects, or for a deletion
// done; a real deletion is answered with nothing.
func wholeAnswer(res *http.Response) (*http.Response, error) {
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, maxListing))
	if err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	var answer struct {
		Error json.RawMessage `json:"error"`
	}
	none := len(text) == 0 && res.Request.Method == http.MethodDelete
	if err := json.Unmarshal(text, &answer); err != nil && !none || answer.Error != nil {
		return nil, &sdk.Error{Code: sdk.Unavailable, Err: errors.New("an answer of success ends in its middle, or is something else"), Hint: hintEndpoint}
	}
	res.Body = io.NopCloser(bytes.NewReader(text))
	return res, nil
}

type readKey struct{}

// read is one Get. Its first answer is its only one: Google's client would ask for the rest of a body that broke, and the host, which
// counts attempts, would not know.
type read struct {
	fault error
}

// withRead marks the requests of one Get.
func withRead(ctx context.Context) context.Context {
	return context.WithValue(ctx, readKey{}, &read{})
}

func (r *read) body(res *http.Response) io.ReadCloser {
	body := &readBody{ReadCloser: res.Body, read: r}
	if res.StatusCode == http.StatusOK && !res.Uncompressed {
		body.want, body.check = crcOf(res.Header)
	}
	return body
}

// crcOf is the checksum that the store declares, "X-Goog-Hash: crc32c=AAAAAA==,md5=…".
func crcOf(h http.Header) (uint32, bool) {
	for _, value := range h.Values("X-Goog-Hash") {
		for part := range strings.SplitSeq(value, ",") {
			text, ok := strings.CutPrefix(strings.TrimSpace(part), "crc32c=")
			sum, err := base64.StdEncoding.DecodeString(text)
			if ok && err == nil && len(sum) == crc32.Size {
				return binary.BigEndian.Uint32(sum), true
			}
		}
	}
	return 0, false
}

// readBody holds content to the checksum that came with it, and notes why it ended early.
type readBody struct {
	io.ReadCloser
	read  *read
	got   uint32
	want  uint32
	check bool
}

func (b *readBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.check {
		b.got = crc32.Update(b.got, crc32.MakeTable(crc32.Castagnoli), p[:n])
	}
	if err == io.EOF && b.check && b.got != b.want {
		err = &sdk.Error{Code: sdk.Corrupt, Err: fmt.Errorf("the content has the CRC32C %08x where the store declares %08x", b.got, b.want)}
	}
	if err != nil && err != io.EOF {
		b.read.fault = err
	}
	return n, err
}
