package rudestore

import (
	"encoding/xml"
	"net/http"
	"strconv"
	"strings"
)

// azure speaks the Blob service: Put Blob, Get Blob, List Blobs, Delete Blob. An address may begin with the account, as an emulator's does.
type azure struct{}

func (azure) read(r *http.Request) (call, trouble) {
	path := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/"), account+"/")
	name, key, _ := strings.Cut(path, "/")
	if name != bucket {
		return call{}, noSuchBucket
	}
	q := r.URL.Query()
	c := call{key: key, ifAbsent: r.Header.Get("If-None-Match") == "*"}
	switch {
	case r.Method == http.MethodPut && key != "" && !q.Has("comp"):
		c.op = Put
		return c, azureFraming(r)
	case r.Method == http.MethodDelete && key != "":
		c.op = Delete
	case r.Method == http.MethodHead && key != "":
		c.op = Head
	case r.Method == http.MethodGet && q.Get("comp") == "list" && q.Get("delimiter") == "":
		c.op, c.prefix, c.token = List, q.Get("prefix"), q.Get("marker")
		c.max, _ = strconv.Atoi(q.Get("maxresults")) // absent or wrong: the store's own page
	case r.Method == http.MethodGet && key != "" && !q.Has("comp"):
		c.op = Get
	default:
		return c, notImplemented
	}
	return c, c.azureRange(r)
}

func azureFraming(r *http.Request) trouble {
	switch {
	case r.ContentLength < 0:
		return lengthRequired
	case r.Header.Get("X-Ms-Blob-Type") != "BlockBlob":
		return badRequest
	}
	return none
}

func (c *call) azureRange(r *http.Request) trouble {
	header := r.Header.Get("X-Ms-Range")
	if header == "" {
		header = r.Header.Get("Range")
	}
	if header != "" && !c.parseRange(header) {
		return badRequest
	}
	return none
}

func (azure) content(r *http.Request, body []byte) ([]byte, trouble) {
	for _, header := range []string{"Content-Md5", "X-Ms-Blob-Content-Md5"} {
		if have := r.Header.Get(header); have != "" && have != md5Base64(body) {
			return nil, badDigest
		}
	}
	return body, none
}

func (azure) keys(c call, _ []byte) ([]string, trouble) { return []string{c.key}, none }

func azureHeaders(h http.Header) {
	h.Set("X-Ms-Request-Id", "00000000-0000-0000-0000-0123456789ab")
	h.Set("X-Ms-Version", "2024-11-04")
}

func (azure) stored(w http.ResponseWriter, _ call, obj object) {
	azureHeaders(w.Header())
	w.Header().Set("ETag", etag(obj))
	w.Header().Set("Last-Modified", obj.modified.Format(http.TimeFormat))
	w.Header().Set("Content-MD5", md5Base64(obj.content))
	w.WriteHeader(http.StatusCreated)
}

func (azure) described(h http.Header, obj object) {
	azureHeaders(h)
	h.Set("ETag", etag(obj))
	h.Set("Last-Modified", obj.modified.Format(http.TimeFormat))
	h.Set("Content-Type", "application/octet-stream")
	h.Set("X-Ms-Blob-Type", "BlockBlob")
	h.Set("X-Ms-Blob-Content-Md5", md5Base64(obj.content))
}

func (azure) about(w http.ResponseWriter, _ call, obj object) {
	azure{}.described(w.Header(), obj)
	w.Header().Set("Content-MD5", md5Base64(obj.content))
	w.Header().Set("Content-Length", strconv.Itoa(len(obj.content)))
	w.WriteHeader(http.StatusOK)
}

type azureProperties struct {
	Modified string `xml:"Last-Modified"`
	Etag     string
	Length   int    `xml:"Content-Length"`
	Type     string `xml:"Content-Type"`
	MD5      string `xml:"Content-MD5"`
	BlobType string
	Tier     string `xml:"AccessTier"`
}

type azureBlob struct {
	Name       string
	Properties azureProperties
}

type azureList struct {
	XMLName    xml.Name `xml:"EnumerationResults"`
	Container  string   `xml:"ContainerName,attr"`
	Prefix     string
	Marker     string
	MaxResults int
	Blobs      struct{ Blob []azureBlob }
	NextMarker string
}

func (azure) listed(w http.ResponseWriter, c call, p page) {
	list := azureList{Container: bucket, Prefix: c.prefix, Marker: c.token, MaxResults: maxPage, NextMarker: p.next}
	for i, key := range p.keys {
		obj := p.objects[i]
		list.Blobs.Blob = append(list.Blobs.Blob, azureBlob{Name: key, Properties: azureProperties{
			Modified: obj.modified.Format(http.TimeFormat), Etag: etag(obj), Length: len(obj.content), Type: "application/octet-stream",
			MD5: md5Base64(obj.content), BlobType: "BlockBlob", Tier: "Hot",
		}})
	}
	azureHeaders(w.Header())
	writeXML(w, http.StatusOK, list)
}

func (azure) deleted(w http.ResponseWriter, c call, _ []string, faults []trouble) {
	if faults[0] != none {
		azure{}.failed(w, c, faults[0], 0)
		return
	}
	azureHeaders(w.Header())
	w.WriteHeader(http.StatusAccepted)
}

func (azure) failed(w http.ResponseWriter, _ call, what trouble, status int) {
	said := what.words(Azure)
	if status == 0 {
		status = said.status
	}
	azureHeaders(w.Header())
	w.Header().Set("X-Ms-Error-Code", said.code)
	writeXML(w, status, struct {
		XMLName       xml.Name `xml:"Error"`
		Code, Message string
	}{Code: said.code, Message: said.message})
}
