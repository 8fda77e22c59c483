//go:build race

package trigger

// cases is how often each property is tried when nobody says otherwise with -rapid.checks. The race detector makes each case several times
// dearer, and a pure package has little for it to find.
const cases = "1000"
