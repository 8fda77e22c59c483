package sdktest_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/cairnsync/cairn/sdk"
	"github.com/cairnsync/cairn/sdk/rpc"
	"github.com/cairnsync/cairn/sdk/sdktest"
)

// The figures of fakeConfig: where the fake store is, and what must never be seen.
const (
	fakeEndpoint = "http://store.test:9000"
	fakeSecret   = "correct horse battery staple"
)

type fakeConfig struct {
	Endpoint string     `cairn:"endpoint,required" doc:"where the store is"`
	Key      sdk.Secret `cairn:"key,required" doc:"opens it"`
	Mode     string     `cairn:"mode" default:"fast" enum:"fast,slow" doc:"how it works"`
	Retries  int64      `cairn:"retries" default:"0" doc:"counted, never made"`
}

// fakePlugin plays a plugin whose processes are in this one: what crosses the wire does so for real, over rpc.InProcess, and signals are calls.
type fakePlugin struct {
	t     *testing.T
	spool string
	store *sdktest.Mem // what all processes share

	mu     sync.Mutex
	starts int
	plant  func(p *fakeProcess) // what is wrong with each process
}

// newFake gives a plugin and the Env to examine it in.
func newFake(t *testing.T, soon time.Duration, plant func(p *fakeProcess)) *sdktest.Env {
	f := &fakePlugin{t: t, store: sdktest.NewMem(), plant: plant}
	client, spool := sdktest.OverRPC(t, f.store)
	f.spool = spool
	env := &sdktest.Env{Target: client, Spool: spool, Process: f}
	env.Hurry(soon)
	return env
}

// Config implements sdktest.Starter.
func (f *fakePlugin) Config() []byte {
	return fmt.Appendf(nil, `{"endpoint":%q,"key":%q,"mode":"slow"}`, fakeEndpoint, fakeSecret)
}

// Start implements sdktest.Starter.
func (f *fakePlugin) Start(ctx context.Context, patience time.Duration) (sdktest.Instance, error) {
	f.mu.Lock()
	f.starts++
	p := &fakeProcess{plugin: f, number: f.starts, patience: patience, mem: f.store, exited: make(chan struct{}), running: make(chan struct{})}
	f.mu.Unlock()
	close(p.running)
	client, stop, err := rpc.InProcess(context.WithoutCancel(ctx), p.definition(), hclog.NewNullLogger(), rpc.Clocks{Hung: time.Minute})
	if err != nil {
		return nil, err
	}
	p.client, p.stop = client, sync.OnceFunc(func() { _ = stop() })
	p.good()
	if f.plant != nil {
		f.plant(p)
	}
	return p, nil
}

// fakeProcess is one process. A planted fault replaces a field.
type fakeProcess struct {
	plugin   *fakePlugin
	number   int // 1 for the first that was started
	patience time.Duration
	mem      *sdktest.Mem // the store as this process sees it
	client   *rpc.Client
	stop     func()

	describe    func(d sdk.Description) sdk.Description
	validate    func(ctx context.Context, config []byte) error
	configure   func(ctx context.Context, config []byte) error
	unseen      func(ctx context.Context, config []byte) (bool, error)
	drain       func(ctx context.Context, wait time.Duration) (int, error)
	put         func(ctx context.Context, req sdk.PutRequest) (sdk.PutResult, error)
	get         func(ctx context.Context, req sdk.GetRequest) (sdk.GetResult, error)
	fetch       func(ctx context.Context, req sdk.GetRequest, f *os.File, off int64) (int64, error)
	signals     map[syscall.Signal]func()
	hangUp      func()
	connections func() ([]string, error)
	stdout      []string
	said        []string
	away        sdk.Code // of a store that is not there

	mu      sync.Mutex
	running chan struct{} // closed while the process is not stopped
	lastKey string
	once    sync.Once
	exited  chan struct{}
	status  int
}

var _ sdktest.Instance = (*fakeProcess)(nil)

func (p *fakeProcess) definition() sdk.Plugin[fakeConfig] {
	return sdk.Plugin[fakeConfig]{
		Name: "fake", Version: "1.0.0", Doc: "for the exam of the exam",
		Open: func(_ context.Context, _ sdk.Env, cfg fakeConfig) (sdk.Target, error) {
			away := cfg.Endpoint != fakeEndpoint
			return &sdktest.Faulty{Target: viaProcess{p}, Before: func(ctx context.Context, _ sdktest.Call) error {
				if away {
					return &sdk.Error{Code: p.away, Err: errors.New("connection refused")}
				}
				return p.awaitRun(ctx)
			}}, nil
		},
	}
}

// viaProcess is the store that a process has at the moment.
type viaProcess struct{ p *fakeProcess }

func (v viaProcess) Put(ctx context.Context, req sdk.PutRequest) (sdk.PutResult, error) {
	v.p.mu.Lock()
	v.p.lastKey = req.Key
	v.p.mu.Unlock()
	return v.p.mem.Put(ctx, req)
}

func (v viaProcess) Get(ctx context.Context, req sdk.GetRequest) (sdk.GetResult, error) {
	return v.p.mem.Get(ctx, req)
}

func (v viaProcess) List(ctx context.Context, req sdk.ListRequest) iter.Seq2[sdk.Object, error] {
	return v.p.mem.List(ctx, req)
}

func (v viaProcess) Delete(ctx context.Context, keys []string) error {
	return v.p.mem.Delete(ctx, keys)
}

func (p *fakeProcess) awaitRun(ctx context.Context) error {
	p.mu.Lock()
	running := p.running
	p.mu.Unlock()
	select {
	case <-running:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// good is a process without faults.
func (p *fakeProcess) good() {
	p.away = sdk.Unavailable
	p.describe = func(d sdk.Description) sdk.Description { return d }
	p.validate = p.client.Validate
	p.configure = func(ctx context.Context, config []byte) error {
		return p.client.Configure(ctx, rpc.Configuration{Target: "exam", Config: config, Spool: p.plugin.spool})
	}
	p.unseen = func(ctx context.Context, config []byte) (bool, error) {
		return p.client.ConfigureUnseen(ctx, rpc.Configuration{Target: "exam", Config: config, Spool: p.plugin.spool})
	}
	p.drain, p.put, p.get, p.fetch = p.client.Drain, p.client.Put, p.client.Get, p.client.Fetch
	p.signals = map[syscall.Signal]func(){
		syscall.SIGTERM: func() { p.exit(0, true) },
		syscall.SIGKILL: func() { p.exit(-1, false) },
		syscall.SIGINT:  func() {},
		syscall.SIGSTOP: func() { p.setRunning(false) },
		syscall.SIGCONT: func() { p.setRunning(true) },
	}
	p.hangUp = func() { p.exit(0, true) }
	p.connections = func() ([]string, error) { return nil, nil }
}

func (p *fakeProcess) setRunning(run bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.running:
		if !run {
			p.running = make(chan struct{})
		}
	default:
		if run {
			close(p.running)
		}
	}
}

// exit ends the process, from a goroutine of its own as a kernel does.
func (p *fakeProcess) exit(status int, gently bool) {
	p.once.Do(func() {
		go func() {
			defer close(p.exited)
			p.status = status
			p.setRunning(true)
			if gently {
				_, _ = p.client.Drain(context.Background(), 5*time.Second)
			}
			p.stop()
		}()
	})
}

// key is one that the case in progress has not used; it is for what a dead process leaves.
func (p *fakeProcess) key(name string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return path.Dir(p.lastKey) + "/" + name
}

func (p *fakeProcess) List(ctx context.Context, req sdk.ListRequest) iter.Seq2[sdk.Object, error] {
	return p.client.List(ctx, req)
}

func (p *fakeProcess) Delete(ctx context.Context, keys []string) error {
	return p.client.Delete(ctx, keys)
}

func (p *fakeProcess) Put(ctx context.Context, req sdk.PutRequest) (sdk.PutResult, error) {
	if strings.Contains(req.Key, "/slow-") {
		p.await(p.patience * 5 / 4) // a throttled process would take so long by itself
	}
	return p.put(ctx, req)
}

func (p *fakeProcess) await(d time.Duration) {
	select {
	case <-time.After(d):
	case <-p.exited:
	}
}

func (p *fakeProcess) Get(ctx context.Context, req sdk.GetRequest) (sdk.GetResult, error) {
	return p.get(ctx, req)
}

func (p *fakeProcess) Fetch(ctx context.Context, req sdk.GetRequest, f *os.File, off int64) (int64, error) {
	return p.fetch(ctx, req, f, off)
}

func (p *fakeProcess) Describe(ctx context.Context) (sdk.Description, error) {
	d, err := p.client.Describe(ctx)
	return p.describe(d), err
}

func (p *fakeProcess) Validate(ctx context.Context, config []byte) error {
	return p.validate(ctx, config)
}

func (p *fakeProcess) Configure(ctx context.Context, config []byte) error {
	return p.configure(ctx, config)
}

func (p *fakeProcess) ConfigureUnseen(ctx context.Context, config []byte) (bool, error) {
	return p.unseen(ctx, config)
}

func (p *fakeProcess) Drain(ctx context.Context, wait time.Duration) (int, error) {
	return p.drain(ctx, wait)
}

func (p *fakeProcess) Signal(sig syscall.Signal) error {
	p.signals[sig]()
	return nil
}

func (p *fakeProcess) HangUp() error {
	p.hangUp()
	return nil
}
func (p *fakeProcess) Exited() <-chan struct{} { return p.exited }
func (p *fakeProcess) Exit() (int, string) {
	<-p.exited
	return p.status, fmt.Sprintf("exited with code %d", p.status)
}
func (p *fakeProcess) Stdout() []string               { return p.stdout }
func (p *fakeProcess) Said() []string                 { return append(p.said, p.stdout...) }
func (p *fakeProcess) Connections() ([]string, error) { return p.connections() }
func (p *fakeProcess) PeakMemory() int64              { return 1 << 20 }
func (p *fakeProcess) Close(context.Context) {
	p.exit(-1, false)
	<-p.exited
}

func TestAGoodProcessPassesTheExam(t *testing.T) {
	for _, c := range sdktest.Cases() {
		if c.Level != sdktest.Process {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			result := sdktest.RunCase(t.Context(), c, newFake(t, time.Minute, nil))
			if result.Err != nil || result.Skipped != "" {
				t.Errorf("%v %s", result.Err, result.Skipped)
			}
		})
	}
}
