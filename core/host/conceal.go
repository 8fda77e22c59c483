package host

import "github.com/cairnsync/cairn/core/pluginhost"

// Conceal keeps the memory, the environment and the descriptors of this process from other processes of the same user, and so from the plugins,
// which could read the secrets of every target there (Linux; root is let in all the same). It changes the whole process: it is for a main to
// call, before Load.
func Conceal() error { return pluginhost.Conceal() }
