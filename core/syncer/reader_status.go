package syncer

import "time"

// Trouble tells why a call of this reader is repeated at the moment, and when it is made again. "" = none is. It may be called from any
// goroutine, also while the reader works.
func (r *Reader) Trouble() (why string, next time.Time) {
	now := r.calls.note.snapshot()
	return now.Error, now.Next
}
