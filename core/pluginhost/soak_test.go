package pluginhost

import (
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// holdings is what a process holds that a leak would make grow.
type holdings struct {
	goroutines, descriptors, sockets, dirs int
	heap                                   uint64 // bytes
}

func held(t *testing.T, runtimeDir string) holdings {
	t.Helper()
	h := holdings{goroutines: runtime.NumGoroutine(), descriptors: len(namesIn(t, "/dev/fd")), dirs: len(namesIn(t, runtimeDir))}
	for _, fd := range namesIn(t, "/dev/fd") {
		if to, err := os.Readlink("/dev/fd/" + fd); err == nil && strings.HasPrefix(to, "socket:") {
			h.sockets++
		}
	}
	runtime.GC()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	h.heap = memory.HeapAlloc
	return h
}

// go-plugin lost a little at each abnormal exit; a target that restarts once a minute would fill a machine in a month.
func TestCrashAfterCrashLeavesNothingBehind(t *testing.T) {
	const targets = 4
	opts, log := testOptions(t)
	opts.Restart.Crashes = 1 << 30
	var supervisors []*Supervisor
	var stops []func()
	for range targets {
		s, stop := supervised(t, testSpec(t, "good"), opts)
		supervisors, stops = append(supervisors, s), append(stops, stop)
	}
	crashEach := func(times int) {
		var all sync.WaitGroup
		for _, s := range supervisors {
			all.Go(func() {
				for range times {
					if err := put(t.Context(), s, "k"); err != nil {
						t.Error(err)
						return
					}
					killed(t, s)
					log.reset()
				}
			})
		}
		all.Wait()
	}
	crashEach(5) // until pools and caches have their size
	before := held(t, opts.RuntimeDir)
	crashEach(crashCycles / targets)
	var after holdings
	eventually(t, "as much is held as before", func() bool {
		after = held(t, opts.RuntimeDir)
		return after.goroutines <= before.goroutines+2 && after.descriptors <= before.descriptors+2 && after.sockets <= before.sockets+1 &&
			after.dirs <= before.dirs && after.heap <= before.heap+2<<20
	})
	t.Logf("%d crashes: before %+v, after %+v", crashCycles, before, after)
	for i, s := range supervisors {
		if restarts := s.Status().Restarts; restarts != crashCycles/targets+5 {
			t.Errorf("%d restarts", restarts)
		}
		stops[i]()
	}
	wantEmpty(t, opts.RuntimeDir)
}

// The same for starts that fail, each at another step: what is left of them adds up even faster, for they are repeated for ever.
func TestFailedStartAfterFailedStartLeavesNothingBehind(t *testing.T) {
	opts, log := testOptions(t)
	specs := []Spec{testSpec(t, "exit0"), testSpec(t, "good"), testSpec(t, "good"), testSpec(t, "good")}
	specs[1].Config = []byte(`{"mark":"bad"}`)
	specs[2].Path = "/nowhere/x"
	specs[3].Path = planted(t, "x", "#!/nowhere\n", 0o700)
	round := func() {
		for _, spec := range specs {
			if store, _, err := Open(t.Context(), spec, opts); err == nil {
				store.Close(t.Context())
				t.Fatal("it starts")
			}
		}
		log.reset()
	}
	for range 10 {
		round()
	}
	before := held(t, opts.RuntimeDir)
	for range crashCycles / 20 {
		round()
	}
	eventually(t, "as much is held as before", func() bool {
		after := held(t, opts.RuntimeDir)
		return after.goroutines <= before.goroutines+2 && after.descriptors <= before.descriptors+2 && after.dirs <= before.dirs && after.heap <= before.heap+2<<20
	})
}

// killed kills the process of s and waits for the next one.
func killed(t *testing.T, s *Supervisor) {
	t.Helper()
	st := s.Status()
	if err := syscall.Kill(st.PID, syscall.SIGKILL); err != nil {
		t.Error(err)
	}
	s.waitFor(t, "it is started again", func(now Status) bool { return now.Restarts == st.Restarts+1 && now.State == StateReady })
}

// waitFor waits for a status by its changes, without polling.
func (s *Supervisor) waitFor(t *testing.T, what string, met func(Status) bool) {
	t.Helper()
	for {
		_, status, changed := s.look()
		if met(status) {
			return
		}
		if !within(bound, changed) {
			t.Errorf("not within %v: %s", bound, what)
			return
		}
	}
}
