package host

import (
	"regexp"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cairnsync/cairn/core/pluginhost"
)

// The drain and what follows it came on top of shutdown_timeout: up to a quarter of a minute. A plugin that is stopped answers nothing.
func TestAPluginThatHangsIsTakenDownInWhatIsLeftOfTheShutdownTimeout(t *testing.T) {
	for name, row := range map[string]struct {
		pipelines time.Duration // what they need of it
		drain     time.Duration // at most: half of what is left
	}{
		"it is all left": {0, time.Second},
		"it is used up":  {time.Hour, leastEnd / 2},
	} {
		t.Run(name, func(t *testing.T) {
			var later atomic.Int64
			closing := func(in string) {
				if in == "close" {
					later.Store(int64(row.pipelines))
				}
			}
			h := newWorld(t).start(conf{timeout: "2s"}, tapes(closing), func(o *Options) {
				o.Now = func() time.Time { return time.Now().Add(time.Duration(later.Load())) }
			}).up()
			plugin := h.host.targets["t"].plugin
			h.until("the plugin is ready", func() bool { return plugin.Status().State == pluginhost.StateReady })
			must(t, syscall.Kill(plugin.Status().PID, syscall.SIGSTOP))
			h.stop()
			told := regexp.MustCompile(`plugin not drained: it did not answer in time.* waited=(\S+)`).FindStringSubmatch(h.log.String())
			if told == nil {
				t.Fatal("the log does not tell of the drain")
			}
			waited, err := time.ParseDuration(told[1])
			must(t, err)
			if waited > row.drain {
				t.Errorf("the drain had %v, want at most %v", waited, row.drain)
			}
		})
	}
}
