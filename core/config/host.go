package config

import (
	"fmt"
	"net"
	"path/filepath"

	"github.com/hashicorp/hcl/v2"
)

// DefaultListen is where the API listens, and where commands ask, if nothing else is said.
const DefaultListen = "127.0.0.1:7070"

func (l *loader) host(file section) Host {
	s, ok := file.inner("host")
	if !ok {
		s = section{loader: l, spec: hostSpec(), at: file.at}
	}
	host := Host{
		Listen:          s.text("listen"),
		DataDir:         s.path("data_dir", l.dir),
		PluginDir:       s.path("plugin_dir", l.dir),
		LogLevel:        s.text("log_level"),
		LogFormat:       s.text("log_format"),
		ShutdownTimeout: s.duration("shutdown_timeout"),

		RequireChecksums: s.boolean("require_checksums"),
	}
	host.override(l)
	s.checkDataDir(host.DataDir)
	if host.SpoolDir = s.path("spool_dir", l.dir); host.SpoolDir == "" {
		host.SpoolDir = filepath.Join(host.DataDir, "spool")
	}
	s.checkListen(host.Listen)
	if l.spot(host.SpoolDir).holds(l.spot(host.DataDir)) {
		s.fault(s.where("spool_dir"), fmt.Sprintf("spool_dir %s holds the data folder %s", host.SpoolDir, host.DataDir), "The spool is emptied at every start: name a folder of its own, or leave it out.")
	}
	return host
}

func (h *Host) override(l *loader) {
	if l.opts.Listen != "" {
		h.Listen = l.opts.Listen
	}
	if l.opts.DataDir == "" {
		return
	}
	abs, err := filepath.Abs(l.opts.DataDir)
	if err != nil {
		l.report(Diagnostic{Severity: Error, Summary: fmt.Sprintf("data folder %s: %v", l.opts.DataDir, err)})
		return
	}
	h.DataDir, h.DataDirGiven = abs, true
}

// checkDataDir refuses a folder that the caller knows to be unusable, before anything is started in it.
func (s section) checkDataDir(dir string) {
	if s.opts.CheckDataDir == nil {
		return
	}
	at := s.where("data_dir")
	if s.opts.DataDir != "" {
		at = hcl.Range{} // given in place of the file's: no line of it is at fault
	}
	if err := s.opts.CheckDataDir(dir); err != nil {
		s.fault(at, fmt.Sprintf("data_dir cannot be %s", dir), err.Error())
	}
}

// checkListen refuses an address that other machines can reach: the API has no authentication yet.
func (s section) checkListen(listen string) {
	at := s.where("listen")
	if s.opts.Listen != "" {
		at = hcl.Range{} // given in place of the file's: no line of it is at fault
	}
	name, _, err := net.SplitHostPort(listen)
	if err != nil {
		s.fault(at, fmt.Sprintf("listen is not an address: %q", listen), `Write host:port, for example "127.0.0.1:7070".`)
		return
	}
	if ip := net.ParseIP(name); name != "localhost" && (ip == nil || !ip.IsLoopback()) {
		s.fault(at, fmt.Sprintf("listen is not a loopback address: %q", listen), "The API has no authentication: listen on 127.0.0.1, [::1] or localhost, and put a proxy that authenticates in front of it.")
	}
}
