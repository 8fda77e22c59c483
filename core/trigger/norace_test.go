//go:build !race

package trigger

// cases is how often each property is tried when nobody says otherwise with -rapid.checks.
const cases = "10000"
