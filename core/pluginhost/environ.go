package pluginhost

import (
	"maps"
	"slices"
	"strconv"
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
// replaced by ours, which is also where temporary files go, and what the operator wrote. Nothing of the host's environment reaches a plugin:
// no PATH, no HOME, no credentials.
func environment(protocol []string, privateDir string, spec Spec) []string {
	env := []string{"PLUGIN_UNIX_SOCKET_DIR=" + privateDir}
	for name, value := range spec.environ(privateDir) {
		env = append(env, name+"="+value)
	}
	for _, entry := range protocol {
		name, _, _ := strings.Cut(entry, "=")
		if isReserved(name) && name != "PLUGIN_UNIX_SOCKET_DIR" {
			env = append(env, entry)
		}
	}
	slices.Sort(env)
	return env
}

// environ is what the operator wrote, and what holds where the operator wrote nothing.
func (s Spec) environ(privateDir string) map[string]string {
	env := map[string]string{"TMPDIR": privateDir}
	if s.MemoryLimit > 0 {
		env["GOMEMLIMIT"] = strconv.FormatInt(s.MemoryLimit/10*9, 10)
	}
	maps.Copy(env, s.Env)
	return env
}
