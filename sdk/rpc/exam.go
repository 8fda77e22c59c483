package rpc

import (
	"context"
	"fmt"
	"slices"

	"github.com/cairnsync/cairn/sdk/internal/pb"
)

// ConfigureUnseen is Configure for the exam: the nonce of the spool has been taken away by the time the plugin looks for it, as when the
// path names another directory for the plugin than for the host. proven tells whether the plugin says that it has read it. The client
// has no spool afterwards.
func (c *Client) ConfigureUnseen(ctx context.Context, cfg Configuration) (proven bool, err error) {
	spool, err := announceRoot("spool", cfg.Spool)
	if err == nil {
		err = spool.withdraw()
	}
	if err != nil {
		return false, fmt.Errorf("announce the spool: %w", err)
	}
	var reply *pb.ConfigureReply
	err = c.wire.unary(ctx, "configure", 0, func(ctx context.Context) (err error) {
		reply, err = c.wire.rpc.Configure(ctx, &pb.ConfigureRequest{
			Target: cfg.Target, Config: cfg.Config, Roots: []*pb.Root{spool.announcement()},
		})
		return err
	})
	if err != nil {
		return false, err
	}
	names := func(p *pb.Proof) bool { return p.GetRoot() == spool.id }
	return slices.ContainsFunc(reply.GetProofs(), names), fromDiagnostics(reply.GetDiagnostics())
}
