package rpc

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/cairnsync/cairn/sdk"
	"github.com/cairnsync/cairn/sdk/internal/pb"
)

// server answers the host for one plugin with one target.
type server struct {
	pb.UnimplementedTargetServer
	ctx   context.Context // of the process: a target outlives the call that makes it
	app   app
	log   hclog.Logger
	beat  time.Duration
	work  *work
	roots roots

	mu     sync.Mutex
	target sdk.Target // guarded; nil until Configure
	raw    sdk.Target
	close  context.CancelFunc // ends the context that Open got
}

func newServer(ctx context.Context, a app, log hclog.Logger, beat time.Duration) *server {
	return &server{ctx: ctx, app: a, log: log, beat: beat, work: newWork(log)}
}

// Describe works at any time.
func (s *server) Describe(ctx context.Context, _ *pb.DescribeRequest) (d *pb.Description, err error) {
	err = s.work.do(ctx, "describe", "", func(context.Context) error {
		d = describeToWire(s.app.describe)
		return nil
	})
	return d, err
}

// Validate is offline.
func (s *server) Validate(ctx context.Context, req *pb.ValidateRequest) (d *pb.Diagnostics, err error) {
	err = s.work.do(ctx, "validate", "", func(context.Context) error {
		d = diagnostics(s.app.validate(req.GetConfig()))
		return nil
	})
	return d, err
}

// Configure makes the target and proves the roots, once.
func (s *server) Configure(ctx context.Context, req *pb.ConfigureRequest) (r *pb.ConfigureReply, err error) {
	err = s.work.do(ctx, "configure", "", func(context.Context) (err error) {
		r, err = s.configure(req)
		return err
	})
	return r, err
}

func (s *server) configure(req *pb.ConfigureRequest) (*pb.ConfigureReply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.target != nil {
		return nil, &sdk.Error{Code: sdk.Unsupported, Err: errors.New("the plugin is configured already")}
	}
	ctx, cancel := context.WithCancel(s.ctx)
	env := sdk.Env{Target: req.GetTarget(), Log: s.log.Named(req.GetTarget())}
	target, err := s.app.open(ctx, env, req.GetConfig())
	if err == nil && target == nil {
		err = errors.New("the plugin's Open gives neither a target nor an error")
	}
	if err != nil {
		cancel()
		if sdk.CodeOf(err) == sdk.InvalidConfig {
			return &pb.ConfigureReply{Diagnostics: diagnostics(err)}, nil
		}
		return nil, err
	}
	s.raw, s.target, s.close = target, sdk.Guard(target), cancel
	return &pb.ConfigureReply{Proofs: s.proveRoots(req.GetRoots())}, nil
}

func (s *server) proveRoots(announced []*pb.Root) []*pb.Proof {
	var proofs []*pb.Proof
	for _, root := range announced {
		proof, err := s.roots.prove(root)
		if err != nil {
			s.log.Warn("a directory of the host cannot be read here", "root", root.GetId(), "path", root.GetPath(), "error", err)
			continue
		}
		proofs = append(proofs, proof)
	}
	return proofs
}

func (s *server) configured() (sdk.Target, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.target == nil {
		return nil, &sdk.Error{Code: sdk.Unsupported, Err: errors.New("the plugin is not configured")}
	}
	return s.target, nil
}

// Delete answers for each key.
func (s *server) Delete(ctx context.Context, req *pb.DeleteRequest) (r *pb.DeleteReply, err error) {
	err = s.work.do(ctx, "delete", "", func(ctx context.Context) error {
		target, err := s.configured()
		if err != nil {
			return err
		}
		r, err = deleteReply(ctx, req.GetKeys(), target.Delete(ctx, req.GetKeys()))
		return err
	})
	return r, err
}

// deleteReply sorts failures by key. One that names no key of the request is the failure of the whole call.
func deleteReply(ctx context.Context, keys []string, err error) (*pb.DeleteReply, error) {
	reply := &pb.DeleteReply{}
	if err == nil {
		return reply, nil
	}
	asked := make(map[string]bool, len(keys))
	for _, key := range keys {
		asked[key] = true
	}
	for _, one := range leaves(err) {
		wire := toWire(drained(ctx, one))
		if !asked[wire.GetKey()] {
			return nil, err
		}
		reply.Errors = append(reply.Errors, wire)
	}
	return reply, nil
}

// Drain ends the work and, once nothing runs, the target.
func (s *server) Drain(ctx context.Context, req *pb.DrainRequest) (*pb.DrainReply, error) {
	running := s.drain(ctx, time.Duration(req.GetTimeoutNanos()))
	return &pb.DrainReply{Running: int32(running)}, nil
}

func (s *server) drain(ctx context.Context, wait time.Duration) (running int) {
	running = s.work.drain(ctx, wait)
	if running > 0 {
		return running
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.raw == nil {
		return 0
	}
	s.close()
	if closer, ok := s.raw.(io.Closer); ok {
		if err := closer.Close(); err != nil {
			s.log.Warn("close the target", "error", err)
		}
	}
	s.raw = nil
	s.roots.close()
	return 0
}

func describeToWire(d sdk.Description) *pb.Description {
	schema := &pb.Schema{}
	for _, a := range d.Schema.Attributes {
		schema.Attributes = append(schema.Attributes, &pb.Attribute{
			Name: a.Name, Type: string(a.Type), Required: a.Required, Default: a.Default, Enum: a.Enum, Doc: a.Doc, Folder: a.Folder,
		})
	}
	return &pb.Description{
		Name: d.Name, Version: d.Version, Sdk: d.SDK, Doc: d.Doc, Schema: schema, Features: d.Features,
	}
}
