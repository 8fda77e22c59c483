package rudestore

import (
	"bytes"
	"crypto/md5" //nolint:gosec // the vendors' protocols have it
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// Op is what a request is for.
type Op string

// The operations; Head is a question for an object without its content.
const (
	Put    Op = "put"
	Get    Op = "get"
	Head   Op = "head"
	List   Op = "list"
	Delete Op = "delete"
)

// maxPage is how many keys a page of a listing has at most, as with all three vendors (Azure allows 5,000).
const maxPage = 1000

// maxBody bounds a request's body: sdk.MaxObject, and room for what a dialect wraps around it.
const maxBody = 64<<20 + 64<<10

// call is a request, understood.
type call struct {
	op       Op
	key      string
	ifAbsent bool
	ranged   bool
	offset   int64
	length   int64 // of a ranged call: -1 = to the end
	xml      bool  // GCS: a read by the XML API, which has errors of its own

	prefix, after, from, token string
	max                        int
}

// speaker is a dialect.
type speaker interface {
	// read understands a request without its body.
	read(r *http.Request) (call, trouble)
	// content takes the object out of the body of a put and checks all that the request declares of it.
	content(r *http.Request, body []byte) ([]byte, trouble)
	// keys takes the keys out of the body of a delete.
	keys(c call, body []byte) ([]string, trouble)

	stored(w http.ResponseWriter, c call, obj object)
	described(h http.Header, obj object) // the headers of a get
	about(w http.ResponseWriter, c call, obj object)
	listed(w http.ResponseWriter, c call, p page)
	// deleted answers which keys could not be removed, and why; a dialect without a call for many keys gets exactly one.
	deleted(w http.ResponseWriter, c call, keys []string, faults []trouble)
	// failed answers trouble in the vendor's words; status 0 = the vendor's.
	failed(w http.ResponseWriter, c call, what trouble, status int)
}

// parseRange reads "bytes=5-9" and "bytes=5-".
func (c *call) parseRange(header string) bool {
	from, to, ok := strings.Cut(strings.TrimPrefix(header, "bytes="), "-")
	if !ok {
		return false
	}
	first, err := strconv.ParseInt(from, 10, 64)
	if err != nil {
		return false
	}
	c.ranged, c.offset, c.length = true, first, -1
	if to == "" {
		return true
	}
	last, err := strconv.ParseInt(to, 10, 64)
	c.length = last - first + 1
	return err == nil && last >= first
}

// cut is the part of content that the call asks for.
func (c *call) cut(content []byte) ([]byte, trouble) {
	size := int64(len(content))
	switch {
	case !c.ranged:
		return content, none
	case c.offset >= size:
		return nil, rangeAfterEnd
	case c.length < 0 || c.length > size-c.offset:
		return content[c.offset:], none
	}
	return content[c.offset : c.offset+c.length], none
}

// readBody reads a request's body to its end. A client that goes away in the middle leaves incomplete.
func readBody(r *http.Request) ([]byte, trouble) {
	var body bytes.Buffer
	if r.ContentLength > 0 && r.ContentLength < maxBody {
		body.Grow(int(r.ContentLength) + bytes.MinRead)
	}
	if _, err := io.Copy(&body, io.LimitReader(r.Body, maxBody+1)); err != nil {
		return nil, incomplete
	}
	if body.Len() > maxBody {
		return nil, badRequest
	}
	return body.Bytes(), none
}

func md5Base64(content []byte) string {
	sum := md5.Sum(content) //nolint:gosec // see the import
	return base64.StdEncoding.EncodeToString(sum[:])
}

func crc32cBase64(content []byte) string {
	sum := crc32.Checksum(content, crc32.MakeTable(crc32.Castagnoli))
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, sum))
}
