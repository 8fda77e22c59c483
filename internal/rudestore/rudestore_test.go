package rudestore

import (
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/cairnsync/cairn/sdk"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func opener(s sin) func(*testing.T, Server) sdk.Target {
	return func(t *testing.T, server Server) sdk.Target {
		target := newBare(server, s)
		t.Cleanup(target.client.CloseIdleConnections)
		return target
	}
}

// TestATargetWithoutSinPasses shows that the scenarios ask for nothing that a small target could not do.
func TestATargetWithoutSinPasses(t *testing.T) { Run(t, S3, opener("")) }

// TestEachSinIsFound plants the mistakes that the scenarios are for: what does not find one proves nothing.
func TestEachSinIsFound(t *testing.T) {
	for _, c := range []struct {
		sin      sin
		scenario string // the beginning of the names of those that find it
	}{
		{retries, "a reply that is lost"},
		{retries, "a storm of 503"},
		{retries, "a 429"},
		{retries, "an internal error"},
		{retries, "a body that the store stops reading"},
		{retries, "credentials that are configured"},
		{trusting, "a 200 with an error in it"},
		{trusting, "a key that could not be deleted"},
		{follows, "a redirect"},
		{guessing, "a 403"},
		{guessing, "a 404 page"},
		{trusting, "a page under status 200 is not a success: put"},
		{guessing, "a bucket that does not exist"},
		{deaf, "a store that takes a request and never answers"},
		{deaf, "a body that trickles"},
		{careless, "a page that says more follows"},
		{lossy, "a body that is cut short"},
		{wordless, "a 429"},
		{wordless, "a 503 with Retry-After"},
		{wordless, "a checksum"},
		{blind, "a create that the store breaks off in its middle, because"},
		{eager, "a Put with IfAbsent that meets another"},
	} {
		t.Run(string(c.sin)+", and "+c.scenario, func(t *testing.T) {
			t.Parallel()
			played := 0
			for _, s := range Scenarios() {
				if !s.of(S3) || !strings.HasPrefix(s.Name, c.scenario) {
					continue
				}
				played++
				s.patience = 2 * time.Second // for the deaf: it will never come
				if found := s.play(t, S3, opener(c.sin)); len(found) == 0 {
					t.Errorf("%q finds nothing", s.Name)
				}
			}
			if played == 0 {
				t.Error("no scenario has this name")
			}
		})
	}
}

func TestEveryScenarioHasANameOfItsOwn(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range Scenarios() {
		if seen[s.Name] {
			t.Errorf("two are named %q", s.Name)
		}
		seen[s.Name] = true
	}
}

func TestABodyThatIsReadTooOftenIsFound(t *testing.T) {
	if times := readsOfPut(t, S3, opener(rereading)); times != 3 {
		t.Errorf("%.3f times; the target reads it three times", times)
	}
}
