package host

import (
	"time"

	"github.com/cairnsync/cairn/core/circuit"
	"github.com/cairnsync/cairn/core/config"
	"github.com/cairnsync/cairn/core/sqlcircuit"
)

// builtIn makes the sql circuit of a pipeline.
func builtIn(now func() time.Time) func(config.Pipeline) (circuit.Circuit, error) {
	return func(p config.Pipeline) (circuit.Circuit, error) {
		return sqlcircuit.New(sqlConfig(p, now))
	}
}

func sqlConfig(p config.Pipeline, now func() time.Time) sqlcircuit.Config {
	c := sqlcircuit.Config{Schema: p.Circuit.Schema, Now: now}
	for _, in := range p.Circuit.Inputs {
		c.Inputs = append(c.Inputs, sqlInput(in, p.Circuit.MaxBatch))
	}
	return c
}

func sqlInput(in config.Input, maxBatch int) sqlcircuit.Input {
	input := sqlcircuit.Input{Name: in.Name, Apply: in.Apply, MaxBatch: maxBatch, OnError: sqlcircuit.OnError(in.OnError)}
	if in.File != nil {
		input.File = &sqlcircuit.FileInput{Path: in.File.Path, Base: in.File.Base, Format: sqlcircuit.Format(in.File.Format), Follow: in.File.Follow}
	}
	if in.HTTP != nil {
		input.HTTP = &sqlcircuit.HTTPInput{Format: sqlcircuit.Format(in.HTTP.Format)}
	}
	return input
}
