package host

import (
	"net"

	"github.com/cairnsync/cairn/core/config"
	"github.com/cairnsync/cairn/core/syncer"
)

// origin is what the remedies of a host name, so that their commands work on its folders: what its own command named.
func origin(cfg *config.Config) syncer.Origin {
	from := syncer.Origin{File: cfg.File}
	if _, port, err := net.SplitHostPort(cfg.Host.Listen); err == nil && port != "0" && cfg.Host.Listen != config.DefaultListen {
		from.Address = cfg.Host.Listen
	}
	if cfg.Host.DataDirGiven {
		from.DataDir = cfg.Host.DataDir
	}
	return from
}

// commands are those that remedies of this pipeline and one of its targets name; "" = none.
func (p *pipeline) commands(target string) syncer.Commands {
	return syncer.Commands{Pipeline: p.cfg.Name, Target: target, Follows: p.follows(), From: origin(p.host.cfg)}
}

// follows is the target that the pipeline follows as a standby; "" = none.
func (p *pipeline) follows() string {
	block, _ := p.cfg.Backend.Follows()
	return block.Target
}

func (o *Offline) commands() syncer.Commands {
	return syncer.Commands{Pipeline: o.pipeline.Name, From: o.origin}
}
