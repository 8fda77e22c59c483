//go:build cloud

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/cairnsync/cairn/internal/teststore"
	"github.com/cairnsync/cairn/sdk/client"
)

// trouble is a state of the network between the plugin and its store.
type trouble struct {
	name   string
	toxics []teststore.Toxic // none = the network is down
	passes bool              // pushes get through all the same
	says   string            // otherwise, part of what status says of the call that fails
}

func toxic(kind, stream string, toxicity float64, attributes map[string]any) teststore.Toxic {
	return teststore.Toxic{Type: kind, Stream: stream, Toxicity: toxicity, Attributes: attributes}
}

func troubles() []trouble {
	type attributes = map[string]any
	return []trouble{
		{"300 ms of latency each way", []teststore.Toxic{
			toxic("latency", "upstream", 1, attributes{"latency": 300, "jitter": 100}),
			toxic("latency", "downstream", 1, attributes{"latency": 300, "jitter": 100}),
		}, true, ""},
		{"64 KB a second", []teststore.Toxic{toxic("bandwidth", "upstream", 1, attributes{"rate": 64})}, true, ""},
		{"connections that are slow to close", []teststore.Toxic{toxic("slow_close", "downstream", 1, attributes{"delay": 1000})}, true, ""},
		{"answers in small pieces", []teststore.Toxic{toxic("slicer", "downstream", 1, attributes{"average_size": 40, "size_variation": 20, "delay": 100})}, true, ""},
		{"every third connection is reset", []teststore.Toxic{toxic("reset_peer", "downstream", 0.33, attributes{"timeout": 0})}, true, ""},
		{"connections that break off after 200 bytes", []teststore.Toxic{toxic("limit_data", "upstream", 1, attributes{"bytes": 200})}, false, "EOF"},
		{"every connection is reset", []teststore.Toxic{toxic("reset_peer", "downstream", 1, attributes{"timeout": 0})}, false, "connection reset by peer"},
		{"requests vanish and no answer comes", []teststore.Toxic{toxic("timeout", "upstream", 1, attributes{"timeout": 0})}, false, "no answer within"},
		{"the network is down", nil, false, "connection refused"},
	}
}

// CASES A11, A66, A72, A75, A7: the network between the plugin and a real store fails in each way that toxiproxy knows. Nothing is said to be
// committed that is not, status says since when a push is stuck and when it is tried again, and pushes go on by themselves.
func TestPushesOverAFailingNetworkLoseNothing(t *testing.T) {
	plugins := buildPlugins(t, "s3")
	s := settings{file: 4000, http: 4000, payload: 200}
	want := undisturbed(t, plugins, s)

	server := teststore.S3(t)
	network := teststore.NewNetwork(t, server.Endpoint)
	reached := server
	reached.Endpoint = network.Endpoint
	s.plugin, s.config, s.cloud = "s3", s3Config(reached), true
	w := newWorld(t, plugins, s)
	_, looked := observe(t, w.url, server.Dir)
	end := w.send()
	w.upTo(0.05)
	w.start("")
	w.eventually("a first commit", func() bool { return w.offsite().Committed != nil })
	for i, trouble := range troubles() {
		t.Run(trouble.name, func(t *testing.T) {
			// A push of the time before has ended: what comes is new under the trouble.
			w.eventually("all is committed", func() bool {
				target := w.offsite()
				return target.Running == nil && target.Behind != nil && *target.Behind == 0
			})
			if len(trouble.toxics) == 0 {
				network.Down(t)
			}
			for _, toxic := range trouble.toxics {
				network.Plague(t, toxic)
			}
			begun, before := time.Now(), w.commitOffsite()
			w.upTo(0.05 + 0.1*float64(i+1))
			if !trouble.passes {
				w.untilStuck(trouble.says, begun, before)
				network.Heal(t)
			}
			w.committedAgain(before)
			network.Heal(t)
			t.Logf("committed after %v", time.Since(begun).Round(100*time.Millisecond))
		})
	}
	end()
	w.finish(want)
	looked()
}

// untilStuck waits until status says of a running push what keeps it, since when, and when the call is made again.
func (w *world) untilStuck(says string, begun time.Time, before uuid.UUID) {
	w.t.Helper()
	var job *client.JobView
	w.eventually("status says what keeps the push, since when, and when it is tried again", func() bool {
		job = w.offsite().Running
		return job != nil && job.Error != "" && job.StuckSince != nil && job.Next != nil && job.Attempts > 1 &&
			job.StuckSince.After(begun.Add(-time.Minute)) && strings.Contains(job.Error, `target "offsite"`) && strings.Contains(job.Error, says)
	})
	if now := w.commitOffsite(); now != before {
		w.t.Errorf("meanwhile status says that %s is committed", now)
	}
	w.t.Logf("status: stuck since %v, %s", job.StuckSince.Sub(begun).Round(time.Millisecond), job.Error)
}

// committedAgain waits until something newer and everything that the host has applied is on the target.
func (w *world) committedAgain(before uuid.UUID) {
	w.t.Helper()
	w.eventually("the push goes on by itself", func() bool {
		target := w.offsite()
		return target.Committed != nil && target.Committed.UUID != before && target.Behind != nil && *target.Behind == 0
	})
}

// commitOffsite is the checkpoint that status says is on the target.
func (w *world) commitOffsite() (id uuid.UUID) {
	w.t.Helper()
	w.eventually("status tells what is committed", func() bool {
		at := w.offsite().Committed
		if at != nil {
			id = at.UUID
		}
		return at != nil
	})
	return id
}
