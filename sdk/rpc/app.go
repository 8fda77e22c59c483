package rpc

import (
	"context"
	"errors"
	"fmt"

	"github.com/cairnsync/cairn/sdk"
)

// app is a plugin without its type parameter.
type app struct {
	describe sdk.Description
	validate func(config []byte) error
	open     func(ctx context.Context, env sdk.Env, config []byte) (sdk.Target, error)
}

// newApp checks what the author wrote: a fault here is one of the program, not of its configuration.
func newApp[C any](p sdk.Plugin[C]) (app, error) {
	schema, err := sdk.SchemaOf[C]()
	if err == nil && (p.Name == "" || p.Open == nil) {
		err = errors.New("sdk.Plugin needs a Name and an Open")
	}
	if err != nil {
		return app{}, fmt.Errorf("plugin %q: %w", p.Name, err)
	}
	decode := func(config []byte) (cfg C, err error) {
		if err = sdk.Decode(config, &cfg); err == nil && p.Validate != nil {
			err = p.Validate(cfg)
		}
		return cfg, err
	}
	return app{
		describe: sdk.Description{Name: p.Name, Version: p.Version, SDK: "go/" + sdk.Version, Doc: p.Doc, Schema: schema},
		validate: func(config []byte) error {
			_, err := decode(config)
			return err
		},
		open: func(ctx context.Context, env sdk.Env, config []byte) (sdk.Target, error) {
			cfg, err := decode(config)
			if err != nil {
				return nil, err
			}
			return p.Open(ctx, env, cfg)
		},
	}, nil
}
