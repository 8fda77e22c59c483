package rudestore

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// s3 speaks the REST API with path-style addresses. It refuses what many S3-compatible stores refuse: bodies of unknown length, trailers,
// and the aws-chunked framing.
type s3 struct{}

func (s3) read(r *http.Request) (call, trouble) {
	name, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if name != bucket {
		return call{}, noSuchBucket
	}
	q := r.URL.Query()
	c := call{key: key, ifAbsent: r.Header.Get("If-None-Match") == "*"}
	switch {
	case r.Method == http.MethodPut && key != "" && !q.Has("partNumber"):
		c.op = Put
		return c, s3Framing(r)
	case r.Method == http.MethodPost && q.Has("delete"), r.Method == http.MethodDelete && key != "":
		c.op = Delete
	case r.Method == http.MethodHead && key != "":
		c.op = Head
	case r.Method == http.MethodGet && q.Get("list-type") == "2" && q.Get("delimiter") == "":
		return c, c.s3Listing(q)
	case r.Method == http.MethodGet && key != "":
		c.op = Get
	default:
		return c, notImplemented
	}
	if header := r.Header.Get("Range"); header != "" && !c.parseRange(header) {
		return c, badRequest
	}
	return c, none
}

func s3Framing(r *http.Request) trouble {
	switch {
	case r.ContentLength < 0:
		return lengthRequired
	case strings.Contains(r.Header.Get("Content-Encoding"), "aws-chunked"), r.Header.Get("X-Amz-Trailer") != "":
		return notImplemented
	}
	return none
}

func (c *call) s3Listing(q url.Values) trouble {
	c.op, c.prefix, c.after = List, q.Get("prefix"), q.Get("start-after")
	if q.Get("max-keys") != "" {
		n, err := strconv.Atoi(q.Get("max-keys"))
		if err != nil || n < 1 {
			return badRequest
		}
		c.max = n
	}
	token, err := base64.StdEncoding.DecodeString(q.Get("continuation-token"))
	if err != nil {
		return badRequest
	}
	c.token = string(token)
	return none
}

func (s3) content(r *http.Request, body []byte) ([]byte, trouble) {
	sum := sha256.Sum256(body)
	payload := r.Header.Get("X-Amz-Content-Sha256")
	if payload != "UNSIGNED-PAYLOAD" && payload != hex.EncodeToString(sum[:]) {
		return nil, badDigest
	}
	for header, want := range map[string]string{
		"X-Amz-Checksum-Sha256": base64.StdEncoding.EncodeToString(sum[:]),
		"X-Amz-Checksum-Crc32c": crc32cBase64(body),
		"Content-Md5":           md5Base64(body),
	} {
		if have := r.Header.Get(header); have != "" && have != want {
			return nil, badDigest
		}
	}
	return body, none
}

func (s3) keys(c call, body []byte) ([]string, trouble) {
	if c.key != "" {
		return []string{c.key}, none
	}
	var wanted struct {
		Object []struct{ Key string }
	}
	if err := xml.Unmarshal(body, &wanted); err != nil || len(wanted.Object) == 0 || len(wanted.Object) > 1000 {
		return nil, badRequest
	}
	var keys []string
	for _, one := range wanted.Object {
		keys = append(keys, one.Key)
	}
	return keys, none
}

func (s3) stored(w http.ResponseWriter, _ call, obj object) {
	sum := sha256.Sum256(obj.content)
	w.Header().Set("ETag", etag(obj))
	w.Header().Set("X-Amz-Checksum-Sha256", base64.StdEncoding.EncodeToString(sum[:]))
	s3Headers(w)
	w.WriteHeader(http.StatusOK)
}

func etag(obj object) string { return fmt.Sprintf(`"%032x"`, obj.version) }

func s3Headers(w http.ResponseWriter) { w.Header().Set("X-Amz-Request-Id", "RUDE0123456789AB") }

func (s3) described(h http.Header, obj object) {
	h.Set("ETag", etag(obj))
	h.Set("Last-Modified", obj.modified.Format(http.TimeFormat))
	h.Set("Content-Type", "application/octet-stream")
	h.Set("X-Amz-Request-Id", "RUDE0123456789AB")
}

func (s3) about(w http.ResponseWriter, _ call, obj object) {
	s3{}.described(w.Header(), obj)
	w.Header().Set("Content-Length", strconv.Itoa(len(obj.content)))
	w.WriteHeader(http.StatusOK)
}

type s3Object struct {
	Key          string
	LastModified string
	ETag         string
	Size         int
	StorageClass string
}

type s3List struct {
	XMLName               xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ ListBucketResult"`
	Name, Prefix          string
	MaxKeys, KeyCount     int
	IsTruncated           bool
	NextContinuationToken string `xml:",omitempty"`
	Contents              []s3Object
}

func (s3) listed(w http.ResponseWriter, c call, p page) {
	list := s3List{Name: bucket, Prefix: c.prefix, MaxKeys: maxPage, KeyCount: len(p.keys), IsTruncated: p.more}
	list.NextContinuationToken = base64.StdEncoding.EncodeToString([]byte(p.next))
	for i, key := range p.keys {
		obj := p.objects[i]
		list.Contents = append(list.Contents, s3Object{
			Key: key, LastModified: obj.modified.Format(time.RFC3339), ETag: etag(obj), Size: len(obj.content), StorageClass: "STANDARD",
		})
	}
	s3Headers(w)
	writeXML(w, http.StatusOK, list)
}

type s3Fault struct {
	Key, Code, Message string
}

func (s3) deleted(w http.ResponseWriter, c call, keys []string, faults []trouble) {
	s3Headers(w)
	if c.key != "" {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	var result struct {
		XMLName xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ DeleteResult"`
		Deleted []struct{ Key string }
		Error   []s3Fault
	}
	for i, key := range keys {
		if faults[i] == none || faults[i] == noSuchKey { // S3 does not tell a missing key from a removed one
			result.Deleted = append(result.Deleted, struct{ Key string }{key})
			continue
		}
		said := faults[i].words(S3)
		result.Error = append(result.Error, s3Fault{Key: key, Code: said.code, Message: said.message})
	}
	writeXML(w, http.StatusOK, result)
}

func (s3) failed(w http.ResponseWriter, c call, what trouble, status int) {
	said := what.words(S3)
	if status == 0 {
		status = said.status
	}
	s3Headers(w)
	writeXML(w, status, struct {
		XMLName                 xml.Name `xml:"Error"`
		Code, Message, Resource string
		RequestID               string `xml:"RequestId"`
	}{Code: said.code, Message: said.message, Resource: "/" + bucket + "/" + c.key, RequestID: "RUDE0123456789AB"})
}

func writeXML(w http.ResponseWriter, status int, doc any) {
	text, err := xml.Marshal(doc)
	if err != nil {
		panic(err) // these are our own types
	}
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	_, _ = w.Write(append([]byte(xml.Header), text...)) // a client that is gone needs no reply
}
