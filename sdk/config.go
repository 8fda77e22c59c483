package sdk

import (
	"context"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/hashicorp/go-hclog"
)

// Version is the version of this SDK, told to the host in Description. Its major is that of the contract, which is frozen as 1: it only
// grows (docs/decisions/0010).
const Version = "1.0.0"

// Plugin is what a plugin's main hands to rpc.Serve. C is its configuration: a struct with cairn tags, see SchemaOf.
type Plugin[C any] struct {
	Name    string // as in plugin = "NAME"
	Version string // semver of the plugin
	Doc     string // what it stores where, in a sentence
	// Validate checks cfg without network; each problem is an *Error with Code InvalidConfig and Attribute. Several are joined. Optional.
	Validate func(cfg C) error
	// Open makes a Target. It does no network I/O: a store that is down must not keep the plugin from starting.
	// ctx lives as long as the Target; a Target that is also an io.Closer is closed when the plugin ends.
	Open func(ctx context.Context, env Env, cfg C) (Target, error)
}

// Env is what the host gives a Target besides its configuration.
type Env struct {
	Target string       // its name in the configuration
	Log    hclog.Logger // goes to the host's log; never write a secret to it
}

// Description is what a plugin tells of itself before it is configured.
type Description struct {
	Name     string   `json:"name"`
	Version  string   `json:"version"`
	SDK      string   `json:"sdk"`
	Doc      string   `json:"doc,omitempty"`
	Schema   Schema   `json:"schema"`
	Features []string `json:"features,omitempty"`
}

// Secret is a configuration value that prints as dots in every verb and encoding.
type Secret string

const dots = "••••••"

// Reveal gives the value, for the vendor's client.
func (s Secret) Reveal() string { return string(s) }

// String is dots, also for an empty secret.
func (s Secret) String() string { return dots }

// Format prints dots for every verb and flag.
func (s Secret) Format(f fmt.State, _ rune) {
	_, _ = io.WriteString(f, dots) // a fmt.State keeps its own error
}

// MarshalText writes dots: a secret leaves a process through a vendor's client only.
func (s Secret) MarshalText() ([]byte, error) { return []byte(dots), nil }

// Size is a number of bytes, written "16MiB".
type Size int64

func sizeUnits() []string { return []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"} }

// ParseSize reads a whole number of bytes with or without one of the units B, KiB, MiB, GiB, TiB, PiB, EiB. Units that mean 1000 to one
// reader and 1024 to another (K, KB, M, MB, …), signs, fractions and exponents are refused.
func ParseSize(text string) (Size, error) {
	digits := strings.TrimRight(text, "BKMGTPEikmgtpeb")
	unit := strings.TrimSpace(text[len(digits):])
	n, err := strconv.ParseUint(strings.TrimSpace(digits), 10, 63)
	if err != nil || strings.HasPrefix(digits, "+") {
		return 0, fmt.Errorf("size %q: want a whole number of bytes with a unit, such as \"16MiB\"", text)
	}
	if unit == "" {
		return Size(n), nil
	}
	for i, known := range sizeUnits() {
		switch {
		case unit != known:
		case n > math.MaxInt64>>(10*i):
			return 0, fmt.Errorf("size %q: larger than 8EiB", text)
		default:
			return Size(n << (10 * i)), nil
		}
	}
	return 0, fmt.Errorf("size %q: unit %q is not one of %s", text, unit, strings.Join(sizeUnits(), ", "))
}

// String is the canonical form: the largest unit that needs no fraction. ParseSize reads it back to the same size.
func (s Size) String() string {
	n, unit := int64(s), 0
	for n != 0 && n%1024 == 0 && unit < len(sizeUnits())-1 {
		n, unit = n/1024, unit+1
	}
	return strconv.FormatInt(n, 10) + sizeUnits()[unit]
}

// MarshalText writes the canonical form.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what ParseSize reads.
func (s *Size) UnmarshalText(text []byte) error {
	size, err := ParseSize(string(text))
	if err == nil {
		*s = size
	}
	return err
}
