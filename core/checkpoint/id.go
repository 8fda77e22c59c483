package checkpoint

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
)

const (
	maxMillis  = 1<<48 - 1 // the time field of a uuid v7
	maxCounter = 1<<62 - 1 // the random field below the variant bits, rand_b of RFC 9562
	maxHigh    = 1<<12 - 1 // rand_a
)

// mint makes a uuid v7 of the time now that is greater than last. When now is not later than last's time (a clock set back, or two
// ids in one millisecond), it takes last's time and counts the random bits up by a random amount, as RFC 9562 (6.2, method 2)
// describes. random is 16 random bytes.
func mint(last uuid.UUID, now time.Time, random [16]byte) (uuid.UUID, error) {
	millis := uint64(min(max(now.UnixMilli(), 0), maxMillis))
	high := uint64(binary.BigEndian.Uint16(random[6:])) & maxHigh
	low := binary.BigEndian.Uint64(random[8:]) & maxCounter
	if before := millisOf(last); last != uuid.Nil && millis <= before {
		millis = before
		high, low = countUp(last, low)
		if high > maxHigh {
			millis, high = millis+1, 0
		}
		if millis > maxMillis {
			return uuid.Nil, errors.New("mint checkpoint id: the ids of this pipeline are at the end of time")
		}
	}
	return compose(millis, high, low), nil
}

// countUp adds at least 1 and at most 2^32 to the counter of last; high exceeds maxHigh when the counter overflows.
func countUp(last uuid.UUID, random uint64) (high, low uint64) {
	high = uint64(binary.BigEndian.Uint16(last[6:])) & maxHigh
	low = binary.BigEndian.Uint64(last[8:])&maxCounter + random&(1<<32-1) + 1
	return high + low>>62, low & maxCounter
}

func millisOf(id uuid.UUID) uint64 { return binary.BigEndian.Uint64(id[:8]) >> 16 }

func compose(millis, high, low uint64) uuid.UUID {
	var id uuid.UUID
	binary.BigEndian.PutUint64(id[:8], millis<<16|7<<12|high)
	binary.BigEndian.PutUint64(id[8:], 2<<62|low)
	return id
}

// checkID accepts what mint makes, so that ids can be counted up from it.
func checkID(id uuid.UUID) error {
	if id.Version() != 7 || id.Variant() != uuid.RFC4122 {
		return fmt.Errorf("checkpoint id %s is not a uuid of version 7", id)
	}
	return nil
}

func compareIDs(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) }

func maxID(a, b uuid.UUID) uuid.UUID {
	if compareIDs(a, b) < 0 {
		return b
	}
	return a
}

// The names of directories below checkpoints/: a prefix and an id. The prefix tells what becomes of one that a crash left behind.
const (
	published = ""       // kept
	writing   = ".tmp-"  // removed
	pulling   = ".pull-" // kept to be resumed
	removing  = ".old-"  // removed
	replaced  = ".was-"  // put back, or named damaged where the checkpoint that replaces it is there
)

// setAside is the prefix under which a damaged checkpoint is kept for people. It is no checkpoint any more.
const setAside = "damaged-"

// parseName takes the name of a directory apart; ok is false for a name that is not ours.
func parseName(name string) (prefix string, id uuid.UUID, ok bool) {
	for _, p := range []string{writing, pulling, removing, replaced} {
		if rest, found := strings.CutPrefix(name, p); found {
			prefix, name = p, rest
			break
		}
	}
	id, err := uuid.Parse(name)
	if err != nil || id.String() != name || checkID(id) != nil {
		return "", uuid.Nil, false // only the canonical spelling: one id, one name
	}
	return prefix, id, true
}
