package rpc

import (
	"context"
	"errors"

	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/cairnsync/cairn/sdk/internal/pb"
)

// ProtocolVersion is the major version of the protocol, as go-plugin negotiates it.
const ProtocolVersion = 1

// Name is what the host dispenses to get a *Client.
const Name = "target"

// The cookie is no secret. It tells a plugin that a host started it, and not a person.
const (
	cookieKey   = "CAIRN_PLUGIN"
	cookieValue = "target-f7b2c7e6a1d84c0f"
)

// Handshake is go-plugin's handshake of both ends.
func Handshake() plugin.HandshakeConfig {
	return plugin.HandshakeConfig{ProtocolVersion: ProtocolVersion, MagicCookieKey: cookieKey, MagicCookieValue: cookieValue}
}

// Plugins is the host's set for go-plugin's client: dispensing Name gives a *Client with these clocks.
func Plugins(clocks Clocks) plugin.PluginSet {
	return plugin.PluginSet{Name: &gluePlugin{clocks: clocks}}
}

// gluePlugin is the one go-plugin plugin, seen from either end.
type gluePlugin struct {
	plugin.NetRPCUnsupportedPlugin
	server *server // the plugin's end only
	clocks Clocks  // the host's end only
}

var _ plugin.GRPCPlugin = (*gluePlugin)(nil)

// GRPCServer registers the plugin's end.
func (g *gluePlugin) GRPCServer(_ *plugin.GRPCBroker, s *grpc.Server) error {
	if g.server == nil {
		return errors.New("this set is the host's")
	}
	pb.RegisterTargetServer(s, g.server)
	return nil
}

// GRPCClient gives the host's end.
func (g *gluePlugin) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return NewClient(conn, g.clocks), nil
}

// serverOptions are the plugin's half of DialOptions.
func serverOptions() []grpc.ServerOption {
	return []grpc.ServerOption{grpc.MaxRecvMsgSize(messageLimit), grpc.MaxSendMsgSize(messageLimit)}
}
