//go:build cloud

package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cairnsync/cairn/internal/teststore"
)

// cloud is a plugin and the real server that it is tried on.
type cloud struct {
	plugin string
	start  func(testing.TB) teststore.Server
	config func(teststore.Server) string // the target's config block
}

func clouds() []cloud {
	return []cloud{
		{"s3", teststore.S3, s3Config},
		{"gcs", teststore.GCS, func(s teststore.Server) string { return attributes("bucket", s.Bucket, "endpoint", s.Endpoint) }},
		{"azure", teststore.Azure, func(s teststore.Server) string {
			return attributes("container", s.Bucket, "endpoint", s.Endpoint+"/"+s.Account, "account", s.Account, "account_key", s.AccountKey)
		}},
	}
}

func s3Config(s teststore.Server) string {
	return attributes("bucket", s.Bucket, "region", s.Region, "endpoint", s.Endpoint, "access_key", s.AccessKey, "secret_key", s.SecretKey) +
		"\n    path_style = true"
}

// attributes writes pairs of names and values as HCL.
func attributes(pairs ...string) string {
	var lines []string
	for i := 0; i < len(pairs); i += 2 {
		lines = append(lines, fmt.Sprintf("%s = %q", pairs[i], pairs[i+1]))
	}
	return strings.Join(lines, "\n    ")
}

// TestCloudPluginsOnTheirRealServers tries each plugin, as a process, on the real server of its kind.
func TestCloudPluginsOnTheirRealServers(t *testing.T) {
	plugins := buildPlugins(t, "s3", "gcs", "azure")
	for _, c := range clouds() {
		t.Run(c.plugin, func(t *testing.T) {
			t.Run("passes the exam", func(t *testing.T) { passesTheExam(t, c, plugins) })
			t.Run("loses nothing when a push is killed", func(t *testing.T) { losesNothing(t, c, plugins) })
			t.Run("stays small under many large Puts", func(t *testing.T) { staysSmall(t, c, plugins) })
		})
	}
	t.Run("a store that lies is found", func(t *testing.T) { theLiarIsFound(t, plugins) })
}

// losesNothing is the whole story: a pipeline pushes every 200 ms while records come in; its host is killed in the middle of later pushes, by
// a named point before and after each kind of write and once from outside; some of the next hosts begin on an empty data folder. In the end
// the tables are those of an undisturbed run, record for record, and a host on an empty data folder has them at once.
func losesNothing(t *testing.T, c cloud, plugins string) {
	s := settings{file: 4000, http: 4000, payload: 100}
	want := undisturbed(t, plugins, s)

	s.plugin, s.config, s.cloud = c.plugin, c.config(c.start(t)), true
	w := newWorld(t, plugins, s)
	end := w.send()
	w.upTo(0.1)
	w.start("")
	w.eventually("a first commit", func() bool { return w.offsite().Committed != nil })
	w.stop()
	for i, point := range []string{"push.pack.begin", "push.pack.done", "push.commit.begin", "push.commit.done"} {
		w.upTo(0.2 + 0.1*float64(i))
		if i%2 == 1 {
			w.freshData()
		}
		w.killedAt(point)
	}
	w.upTo(0.7)
	w.start("")
	w.eventually("a push runs", func() bool { return w.offsite().Running != nil })
	w.kill()
	end()
	w.freshData()
	w.start("")
	w.finish(want)
	t.Logf("%s: killed in five pushes; %d rows of the tables are equal, after a restore from the cloud too", c.plugin, strings.Count(want, "\n"))
}

// killedAt is a life that ends at a named point of a push.
func (w *world) killedAt(point string) {
	w.t.Helper()
	w.start(point + ":1")
	if !w.ended(patience) {
		w.t.Fatalf("the host did not come to %s: %s, %s", point, w.view().State, w.view().Doing)
	}
	if !w.host.killedItself() {
		w.t.Fatalf("the host ended by itself on the way to %s: %v", point, w.host.err)
	}
	w.host = nil
}
