package config

import (
	"time"

	"github.com/hashicorp/hcl/v2"
)

// kind is the type of an attribute's value, as docs/configuration.md names it.
type kind string

const (
	text     kind = "string"
	boolean  kind = "bool"
	integer  kind = "integer"
	duration kind = "duration"
	size     kind = "size"
	path     kind = "path"
	texts    kind = "string or list of strings"
	textMap  kind = "map of strings"
)

// maxDuration is the longest interval that is taken: ten years, so that no sum of times can overflow.
const maxDuration = 10 * 365 * 24 * time.Hour

// attribute is one row of the reference: what may be written, what it means and what holds when it is left out.
type attribute struct {
	Name     string
	Kind     kind
	Required bool
	Default  string        // as it would be written; "" = none, Doc says what that means
	Enum     []string      // the only values, if not nil
	Min, Max int64         // of an integer, which is 0 when it is left out and has no default; of a size, in bytes
	Least    time.Duration // of a duration; the upper bound is maxDuration
	Doc      string
}

// block is one kind of block with all that may stand in it.
type block struct {
	Type       string
	Label      string // what the label is; "" = the block has none
	Once       bool   // at most one of them
	Required   bool   // at least one of them
	Free       bool   // the body is checked by someone else: a plugin's schema
	Doc        string
	Attributes []attribute
	Blocks     []block
}

// schema is what HCL needs to know of the block.
func (b block) schema() *hcl.BodySchema {
	schema := &hcl.BodySchema{}
	for _, a := range b.Attributes {
		schema.Attributes = append(schema.Attributes, hcl.AttributeSchema{Name: a.Name, Required: a.Required})
	}
	for _, inner := range b.Blocks {
		header := hcl.BlockHeaderSchema{Type: inner.Type}
		if inner.Label != "" {
			header.LabelNames = []string{inner.Label}
		}
		schema.Blocks = append(schema.Blocks, header)
	}
	return schema
}

func (b block) attribute(name string) attribute {
	for _, a := range b.Attributes {
		if a.Name == name {
			return a
		}
	}
	panic("config: block " + b.Type + " has no attribute " + name) // a mistake of this package, found by any test that loads a file
}

func (b block) block(name string) block {
	for _, inner := range b.Blocks {
		if inner.Type == name {
			return inner
		}
	}
	panic("config: block " + b.Type + " has no block " + name) // likewise
}

// root is the whole language. docs/configuration.md is generated from it.
func root() block {
	return block{Blocks: []block{hostSpec(), pluginSpec(), targetSpec(), pipelineSpec()}}
}

func hostSpec() block {
	return block{Type: "host", Once: true, Doc: "The process as a whole.", Attributes: []attribute{
		{Name: "listen", Kind: text, Default: DefaultListen, Doc: "host:port of the HTTP API; a loopback address. Port 0 takes a free one."},
		{Name: "data_dir", Kind: path, Default: "./data", Doc: "Folder that holds everything the host writes. Relative to the file."},
		{Name: "plugin_dir", Kind: path, Default: "./bin", Doc: "Folder with the executables cairn-plugin-NAME. Relative to the file."},
		{
			Name: "spool_dir", Kind: path,
			Doc: "Folder for what is on its way to or from a target, the only one that plugins see; emptied at start, at most 256 MiB. Left " +
				"out: spool below data_dir.",
		},
		{Name: "log_level", Kind: text, Default: "info", Enum: []string{"trace", "debug", "info", "warn", "error"}, Doc: "Least severity that is logged."},
		{Name: "log_format", Kind: text, Default: "text", Enum: []string{"text", "json"}, Doc: "Shape of the log lines on standard error."},
		{
			Name: "require_checksums", Kind: boolean, Default: "false",
			Doc: "Run no plugin without a checksum: a target whose plugin has none is a fault, and so is dev = true. `cairn config check` " +
				"gives the line to add.",
		},
		{Name: "shutdown_timeout", Kind: duration, Default: "30s", Least: time.Second, Doc: "How long a stop may take, pushes included, before it is cut short. When the host ends, plugins are taken down in what is left of it, at least 1s."},
	}}
}

func pluginSpec() block {
	doc := "Optional: how to run the plugin NAME. Without it, plugin_dir/cairn-plugin-NAME runs with an empty environment."
	return block{Type: "plugin", Label: "name", Doc: doc, Attributes: []attribute{
		{Name: "path", Kind: path, Doc: "The executable. Left out: cairn-plugin-NAME in plugin_dir. Relative to the file."},
		{Name: "checksum", Kind: text, Doc: "sha256:HEX of the executable, as `cairn plugin hash` prints it; another one is refused. Left out: not checked."},
		{Name: "env", Kind: textMap, Doc: "The plugin's environment. Left out: empty; nothing of the host's own environment reaches a plugin."},
		{
			Name: "memory_limit", Kind: size, Min: 128 << 20, Max: 1 << 40,
			Doc: "Most data that each process of the plugin may map (RLIMIT_DATA, Linux only); one that needs more fails by itself. Left out: " +
				"no bound.",
		},
		{Name: "dev", Kind: boolean, Default: "false", Doc: "Skip the checksum and the permission checks while developing; said loudly in the log."},
	}}
}

func targetSpec() block {
	return block{Type: "target", Label: "name", Doc: "One configured store.", Attributes: []attribute{
		{Name: "plugin", Kind: text, Required: true, Doc: "Name of the plugin that serves it."},
	}, Blocks: []block{
		{Type: "config", Once: true, Free: true, Doc: "The plugin's own attributes, checked against its schema; `cairn plugin info NAME` lists them."},
	}}
}

func pipelineSpec() block {
	return block{Type: "pipeline", Label: "name", Doc: "One circuit with its checkpoints and its storage.", Attributes: []attribute{
		{
			Name: "initial", Kind: text, Default: "running", Enum: []string{"running", "paused", "standby"},
			Doc: "State in which a pipeline starts that has never run here; later starts take up the state it was left in. `standby`: it runs " +
				"no circuit, follows the target that has a pull_interval, and waits to be activated; see [standby.md](standby.md).",
		},
	}, Blocks: []block{circuitSpec(), checkpointSpec(), storageSpec()}}
}

func circuitSpec() block {
	doc := "The computation. The type is `sql`: statements applied to each record, state in an embedded SQLite database."
	return block{Type: "circuit", Label: "type", Once: true, Required: true, Doc: doc, Attributes: []attribute{
		{Name: "schema", Kind: text, Required: true, Doc: "SQL that creates the tables. A changed schema refuses an existing state."},
		{Name: "max_batch", Kind: integer, Default: "10000", Min: 1, Max: 1_000_000, Doc: "Most records that one step applies, in one transaction."},
		{Name: "min_batch", Kind: integer, Default: "0", Min: 0, Max: 1_000_000, Doc: "More buffered records than this make a step due at once; up to so many wait for max_delay."},
		{Name: "max_delay", Kind: duration, Default: "100ms", Least: time.Millisecond, Doc: "Longest time that min_batch records or fewer wait for a step."},
	}, Blocks: []block{inputSpec()}}
}

func inputSpec() block {
	formats := []string{"csv", "ndjson"}
	return block{Type: "input", Label: "name", Required: true, Doc: "One stream of records.", Attributes: []attribute{
		{
			Name: "apply", Kind: texts, Required: true,
			Doc: "Statements applied to each record, each exactly one. They see :record (JSON), :input and :position. All of a record's " +
				"statements take effect, or none.",
		},
		{
			Name: "on_error", Kind: text, Default: "record", Enum: []string{"record", "stop"},
			Doc: "What a refused record does: `record` notes it in table cairn_errors and goes on, `stop` stops the input in front of it.",
		},
	}, Blocks: []block{
		{Type: "file", Once: true, Doc: "Records come from files.", Attributes: []attribute{
			{
				Name: "path", Kind: path, Required: true,
				Doc: "A file or a glob. Relative to the configuration file, and then its files are known by the path from there, wherever the " +
					"configuration lies; see [sql-circuit.md](sql-circuit.md).",
			},
			{Name: "format", Kind: text, Required: true, Enum: formats, Doc: "csv (with a header row; values are text) or ndjson (one JSON object a line)."},
			{Name: "follow", Kind: boolean, Default: "false", Doc: "Go on looking for new lines and new files, at most once a second."},
		}},
		{Type: "http", Once: true, Doc: "Records are sent to POST /v0/pipelines/NAME/ingress/INPUT.", Attributes: []attribute{
			{Name: "format", Kind: text, Default: "ndjson", Enum: formats, Doc: "csv (each batch with its header row) or ndjson."},
		}},
	}}
}

func checkpointSpec() block {
	return block{Type: "checkpoint", Once: true, Doc: "Local checkpoints. Left out: they are taken on request and at a stop only.", Attributes: []attribute{
		{
			Name: "interval", Kind: duration, Least: 100 * time.Millisecond,
			Doc: "Time from the end of one checkpoint to the next, if the state has changed. Left out: on request and at a stop only.",
		},
		{Name: "keep", Kind: integer, Default: "2", Min: 1, Max: 1000, Doc: "Newest local checkpoints that stay on disk. What targets keep is a matter of its own."},
	}}
}

func storageSpec() block {
	doc := "Where state lives: `file` (a folder; survives, checkpoints, may sync), `object` (a target's repository: each checkpoint is committed " +
		"there before it counts, each start takes the newest commit, and the folder is scratch) or `memory` (nothing survives; no attributes, no " +
		"checkpoints)."
	return block{Type: "storage", Label: "type", Once: true, Required: true, Doc: doc, Attributes: []attribute{
		{Name: "path", Kind: path, Doc: "Folder of the pipeline. Relative to data_dir. Left out: the pipeline's name."},
		{Name: "target", Kind: text, Doc: "Only under `storage \"object\"`, and required there: the target that holds the checkpoints."},
		{Name: "prefix", Kind: text, Doc: "Only under `storage \"object\"`: as in a sync block."},
		{Name: "fencing", Kind: text, Default: "required", Enum: []string{"required", "advisory"}, Doc: "Only under `storage \"object\"`: as in a sync block."},
		{
			Name: "start_from_checkpoint", Kind: text,
			Doc: "Only under `storage \"file\"`: what to start from when no local state exists: `latest` takes the newest commit of all its " +
				"targets, a uuid takes that checkpoint and is honoured once. Left out: local state only.",
		},
		{Name: "fail_if_no_checkpoint", Kind: boolean, Default: "false", Doc: "Refuse to start empty."},
	}, Blocks: []block{syncSpec(), seedSpec(), retentionSpec("Only under `storage \"object\"`: as in a sync block.")}}
}

func syncSpec() block {
	retention := "Which commits the target keeps; the others go after a push. At least one of min_count and min_age is given, and what either of them " +
		"keeps stays, and so do the newest commit, the newest that was verified, and those that are pinned. Without the block every commit is " +
		"kept, and nothing is ever deleted unless `cairn remote sweep` is asked for. See [retention.md](retention.md)."
	return block{Type: "sync", Label: "target", Doc: "Push the newest checkpoint to a target. Only under `storage \"file\"`. One block a target.", Attributes: []attribute{
		{
			Name: "push_interval", Kind: duration, Least: 100 * time.Millisecond,
			Doc: "Time from the end of one periodic push to the next, if there is a new checkpoint. Left out: pushes on request only.",
		},
		{
			Name: "pull_interval", Kind: duration, Least: 100 * time.Millisecond,
			Doc: "While the pipeline is a standby: time from the end of one pull of the newest commit to the next look for a newer one. At " +
				"most one sync block of a pipeline has it. A primary pays no regard to it, so both hosts can have the same file. Left out: " +
				"not followed.",
		},
		{Name: "push_on_shutdown", Kind: boolean, Default: "false", Doc: "Push the last checkpoint when the pipeline stops, within shutdown_timeout."},
		{
			Name: "fencing", Kind: text, Default: "required", Enum: []string{"required", "advisory"},
			Doc: "What keeps two writers apart: `required` is the store's create-if-absent, which is tried out before the first push, and a " +
				"store without it is refused; `advisory` pushes to such a store all the same, safe only while one host alone writes there, " +
				"and every status says so.",
		},
		{
			Name: "prefix", Kind: text,
			Doc: "Start of every key on the target: segments of [a-z0-9._-] joined by `/`, at most 200 bytes, none inside another on one " +
				"target, or on two targets that are one place. Left out: the pipeline's name.",
		},
	}, Blocks: []block{retentionSpec(retention)}}
}

func retentionSpec(doc string) block {
	return block{Type: "retention", Once: true, Doc: doc, Attributes: []attribute{
		{Name: "min_count", Kind: integer, Min: 1, Max: 1_000_000, Doc: "The newest so many checkpoints stay. Left out: this rule keeps none."},
		{
			Name: "min_age", Kind: duration, Least: time.Second,
			Doc: "Checkpoints that were committed less than this ago stay, by the clocks of the hosts. Left out: this rule keeps none.",
		},
		{
			Name: "max_delete", Kind: integer, Min: 1, Max: 1_000_000,
			Doc: "A guard against a wrong clock or a mistyped rule: a run that would retire more checkpoints than this retires none, and " +
				"status says so. Left out: no guard.",
		},
	}}
}

func seedSpec() block {
	doc := "Another repository to begin with, on any target: read only, never written, and looked at only where there is no local state and every " +
		"target of the pipeline is proven to hold no checkpoint. It takes start_from_checkpoint, or a standby. What starts from it goes on under " +
		"an identity of its own."
	return block{Type: "seed", Label: "target", Once: true, Doc: doc, Attributes: []attribute{
		{Name: "prefix", Kind: text, Doc: "The repository's prefix on that target. Left out: the pipeline's name."},
		{Name: "from", Kind: text, Doc: "What to take there: `latest`, or the uuid of a checkpoint. Left out: what start_from_checkpoint says; for a standby without it, `latest`."},
	}}
}
