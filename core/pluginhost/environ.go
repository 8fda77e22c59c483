package pluginhost

import (
	"slices"
	"strings"

	"github.com/cairnsync/cairn/sdk/rpc"
)

// isReserved reports whether an environment variable belongs to go-plugin's start-up protocol.
func isReserved(name string) bool {
	switch name {
	case "PLUGIN_MIN_PORT", "PLUGIN_MAX_PORT", "PLUGIN_PROTOCOL_VERSIONS", "PLUGIN_CLIENT_CERT", "PLUGIN_UNIX_SOCKET_DIR",
		"PLUGIN_UNIX_SOCKET_GROUP", "PLUGIN_MULTIPLEX_GRPC", rpc.Handshake().MagicCookieKey:
		return true
	}
	return false
}

// environment is the whole environment of a plugin process: of go-plugin's entries those that its protocol needs, the socket directory
// replaced by ours, and what the operator wrote. Nothing of the host's environment reaches a plugin: no PATH, no HOME, no credentials.
func environment(protocol []string, socketDir string, operator map[string]string) []string {
	env := []string{"PLUGIN_UNIX_SOCKET_DIR=" + socketDir}
	for _, entry := range protocol {
		name, _, _ := strings.Cut(entry, "=")
		if isReserved(name) && name != "PLUGIN_UNIX_SOCKET_DIR" {
			env = append(env, entry)
		}
	}
	for name, value := range operator {
		env = append(env, name+"="+value)
	}
	slices.Sort(env)
	return env
}
