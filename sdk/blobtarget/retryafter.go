package blobtarget

import (
	"net/http"
	"strconv"
	"time"
)

// RetryAfter is for a Hooks.Error: what the header of an answer asks for, 0 = nothing. A date is compared with that of the answer, which is
// the store's own clock.
func RetryAfter(h http.Header) time.Duration {
	value := h.Get("Retry-After")
	if seconds, err := strconv.Atoi(value); err == nil {
		return max(0, time.Duration(seconds)*time.Second)
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	now, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return 0
	}
	return max(0, at.Sub(now))
}
