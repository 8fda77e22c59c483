// Package host puts a Cairn host together: it builds plugins, pipelines and the HTTP API from a configuration, starts them in order and
// stops them in reverse.
//
// A larger platform embeds it: Load reads a configuration, New builds a Host, Run serves until its ctx ends; Options.Circuit brings circuits
// of its own, Host.Handler the API. There is no package-level state; several Hosts can live in one process if their data folders differ. Run
// owns every goroutine that it starts, directly or through the rooms below, and returns when they have ended.
//
// Start order: spool, plugin processes, API, pipelines. A pipeline's own order is: lock its folder, choose the state to start from
// (syncer.ChooseStart), restore it, open the circuit, run the loop. A plugin or a pipeline that fails is shown as failed; it never stops
// the host or another pipeline.
//
// Read host.go and pipeline.go for the lives of the two, then start.go, choose.go and restore.go for one start; transitions.go, requests.go
// and data.go are what the API asks for, view.go and syncview.go what it shows; record.go is what outlives a run. load.go, offline.go and
// plugins.go serve the command line while no host runs.
package host
