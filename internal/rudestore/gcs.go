package rudestore

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// gcs speaks the JSON API, with uploads in one multipart request, and the XML API for reads, as the Go client does by default.
type gcs struct{}

func (gcs) read(r *http.Request) (call, trouble) {
	q := r.URL.Query()
	path := strings.TrimPrefix(r.URL.Path, "/")
	upload, isUpload := strings.CutPrefix(path, "upload/storage/v1/b/")
	jsonPath, isJSON := strings.CutPrefix(path, "storage/v1/b/")
	switch {
	case isUpload && r.Method == http.MethodPost:
		c := call{op: Put, key: q.Get("name"), ifAbsent: q.Get("ifGenerationMatch") == "0"}
		return c, gcsUpload(upload, q.Get("uploadType"))
	case isJSON:
		return gcsJSON(r, jsonPath)
	case r.Method == http.MethodGet, r.Method == http.MethodHead:
		name, key, _ := strings.Cut(path, "/")
		c := call{op: Get, key: key, xml: true}
		if r.Method == http.MethodHead {
			c.op = Head
		}
		return c, c.gcsRead(name, r)
	}
	return call{}, notImplemented
}

func gcsUpload(path, kind string) trouble {
	switch {
	case path != bucket+"/o":
		return noSuchBucket
	case kind != "multipart": // a resumable upload is the client's way of buffering 16 MiB a writer
		return notImplemented
	}
	return none
}

func gcsJSON(r *http.Request, path string) (call, trouble) {
	q := r.URL.Query()
	name, rest, _ := strings.Cut(path, "/")
	key, one := strings.CutPrefix(rest, "o/")
	c := call{key: key}
	switch {
	case one && r.Method == http.MethodDelete:
		c.op = Delete
	case one && r.Method == http.MethodGet && q.Get("alt") == "media":
		c.op = Get
	case one && r.Method == http.MethodGet:
		c.op = Head
	case rest == "o" && r.Method == http.MethodGet && q.Get("delimiter") == "":
		c.op, c.prefix, c.from, c.token = List, q.Get("prefix"), q.Get("startOffset"), q.Get("pageToken")
		c.max, _ = strconv.Atoi(q.Get("maxResults")) // absent or wrong: the store's own page
	default:
		return c, notImplemented
	}
	return c, c.gcsRead(name, r)
}

func (c *call) gcsRead(name string, r *http.Request) trouble {
	if name != bucket {
		return noSuchBucket
	}
	if header := r.Header.Get("Range"); header != "" && !c.parseRange(header) {
		return badRequest
	}
	return none
}

// content unpacks a multipart/related body: the object's metadata in JSON, then its content.
func (gcs) content(r *http.Request, body []byte) ([]byte, trouble) {
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/related" {
		return nil, badRequest
	}
	parts := multipart.NewReader(bytes.NewReader(body), params["boundary"])
	var about struct{ CRC32C, MD5Hash string }
	first, err := parts.NextPart()
	if err != nil || json.NewDecoder(first).Decode(&about) != nil {
		return nil, badRequest
	}
	second, err := parts.NextPart()
	if err != nil {
		return nil, badRequest
	}
	content, err := io.ReadAll(second)
	if err != nil {
		return nil, incomplete // the closing boundary is missing: the client gave up in the middle
	}
	if about.CRC32C != "" && about.CRC32C != crc32cBase64(content) || about.MD5Hash != "" && about.MD5Hash != md5Base64(content) {
		return nil, badDigest
	}
	return content, none
}

func (gcs) keys(c call, _ []byte) ([]string, trouble) { return []string{c.key}, none }

type gcsObject struct {
	Kind           string `json:"kind"`
	Name           string `json:"name"`
	Bucket         string `json:"bucket"`
	Generation     string `json:"generation"`
	Metageneration string `json:"metageneration"`
	Size           string `json:"size"`
	MD5Hash        string `json:"md5Hash"`
	CRC32C         string `json:"crc32c"`
	ETag           string `json:"etag"`
	StorageClass   string `json:"storageClass"`
	Updated        string `json:"updated"`
	Created        string `json:"timeCreated"`
}

func gcsAbout(key string, obj object) gcsObject {
	modified := obj.modified.Format(time.RFC3339Nano)
	return gcsObject{
		Kind: "storage#object", Name: key, Bucket: bucket, Generation: strconv.FormatInt(obj.version, 10), Metageneration: "1",
		Size: strconv.Itoa(len(obj.content)), MD5Hash: md5Base64(obj.content), CRC32C: crc32cBase64(obj.content), ETag: etag(obj),
		StorageClass: "STANDARD", Updated: modified, Created: modified,
	}
}

func (gcs) stored(w http.ResponseWriter, c call, obj object) {
	writeJSON(w, http.StatusOK, gcsAbout(c.key, obj))
}

func (gcs) about(w http.ResponseWriter, c call, obj object) {
	if !c.xml {
		writeJSON(w, http.StatusOK, gcsAbout(c.key, obj))
		return
	}
	gcs{}.described(w.Header(), obj)
	w.Header().Set("Content-Length", strconv.Itoa(len(obj.content)))
	w.WriteHeader(http.StatusOK)
}

func (gcs) described(h http.Header, obj object) {
	h.Set("ETag", etag(obj))
	h.Set("Last-Modified", obj.modified.Format(http.TimeFormat))
	h.Set("Content-Type", "application/octet-stream")
	h.Set("X-Goog-Generation", strconv.FormatInt(obj.version, 10))
	h.Set("X-Goog-Metageneration", "1")
	h.Set("X-Goog-Stored-Content-Length", strconv.Itoa(len(obj.content)))
	h.Set("X-Goog-Stored-Content-Encoding", "identity")
	h.Add("X-Goog-Hash", "crc32c="+crc32cBase64(obj.content))
	h.Add("X-Goog-Hash", "md5="+md5Base64(obj.content))
}

func (gcs) listed(w http.ResponseWriter, _ call, p page) {
	list := struct {
		Kind  string      `json:"kind"`
		Next  string      `json:"nextPageToken,omitempty"`
		Items []gcsObject `json:"items,omitempty"`
	}{Kind: "storage#objects", Next: p.next}
	for i, key := range p.keys {
		list.Items = append(list.Items, gcsAbout(key, p.objects[i]))
	}
	writeJSON(w, http.StatusOK, list)
}

func (gcs) deleted(w http.ResponseWriter, c call, _ []string, faults []trouble) {
	if faults[0] != none {
		gcs{}.failed(w, c, faults[0], 0)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func (gcs) failed(w http.ResponseWriter, c call, what trouble, status int) {
	said := what.words(GCS)
	if status == 0 {
		status = said.status
	}
	w.Header().Set("X-Guploader-Uploadid", "rude-upload-0123")
	if c.xml {
		writeXML(w, status, struct {
			XMLName       xml.Name `xml:"Error"`
			Code, Message string
		}{Code: said.xmlCode(), Message: said.message})
		return
	}
	type reason struct {
		Domain  string `json:"domain"`
		Reason  string `json:"reason"`
		Message string `json:"message"`
	}
	var doc struct {
		Error struct {
			Code    int      `json:"code"`
			Message string   `json:"message"`
			Errors  []reason `json:"errors"`
		} `json:"error"`
	}
	doc.Error.Code, doc.Error.Message = said.status, said.message
	doc.Error.Errors = []reason{{Domain: "global", Reason: said.code, Message: said.message}}
	writeJSON(w, status, doc)
}

func writeJSON(w http.ResponseWriter, status int, doc any) {
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(doc) // a client that is gone needs no reply
}
