package sqlcircuit

import (
	"fmt"
	"mime"
	"slices"
)

// mediaTypes are the names under which senders announce a format.
func (f Format) mediaTypes() []string {
	if f == CSV {
		return []string{"text/csv", "application/csv"}
	}
	return []string{
		"application/x-ndjson", "application/ndjson", "application/x-jsonlines", "application/jsonlines", "application/jsonl", "application/json",
	}
}

// accepts refuses a batch that is announced as the other format. What says nothing of the format is taken: no type at all, and what
// clients send unasked (application/x-www-form-urlencoded, application/octet-stream, text/plain).
func (f Format) accepts(contentType string) error {
	told, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return nil //nolint:nilerr // a type that is none says nothing
	}
	for _, other := range []Format{CSV, NDJSON} {
		if other != f && slices.Contains(other.mediaTypes(), told) {
			return fmt.Errorf("%w: it is announced as %s, and the input takes %s: send that as Content-Type %s, or give the input format = %q",
				ErrMediaType, told, f, f.mediaTypes()[0], other)
		}
	}
	return nil
}
