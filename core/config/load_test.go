package config

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cairnsync/cairn/sdk"
)

var update = flag.Bool("update", false, "rewrite golden files")

type storeConfig struct {
	Path   string            `cairn:"path,required" doc:"Folder."`
	Key    sdk.Secret        `cairn:"key" doc:"Secret key."`
	Mode   string            `cairn:"mode" enum:"fast,safe" default:"safe" doc:"How."`
	Size   sdk.Size          `cairn:"size" doc:"A size."`
	Wait   time.Duration     `cairn:"wait" doc:"A time."`
	Count  int64             `cairn:"count" doc:"A number."`
	Strict bool              `cairn:"strict" doc:"A switch."`
	Tags   []string          `cairn:"tags" doc:"A list."`
	Labels map[string]string `cairn:"labels" doc:"A map."`
}

func options(t *testing.T) Options {
	t.Helper()
	schema, err := sdk.SchemaOf[storeConfig]()
	if err != nil {
		t.Fatal(err)
	}
	untyped := sdk.Schema{Attributes: []sdk.Attribute{{Name: "port", Doc: "Which one."}}}
	listed := sdk.Schema{Attributes: []sdk.Attribute{
		{Name: "pin", Type: sdk.TypeSecret, Enum: []string{"hunter22", "hunter23"}}, {Name: "mode", Type: sdk.TypeString, Enum: []string{"safe"}},
	}}
	return Options{
		Getenv: func(name string) (string, bool) { return "s3cret", name == "KEY" },
		Schema: func(_ Host, p Plugin) (sdk.Schema, error) {
			switch p.Name {
			case "gone":
				return sdk.Schema{}, errors.New("start " + p.Path + ": no such file")
			case "untyped":
				return untyped, nil
			case "listed":
				return listed, nil
			case "shelf":
				return sdk.Schema{Attributes: []sdk.Attribute{{Name: "dir", Type: sdk.TypeString, Required: true, Doc: `the folder, absolute: dir = abspath("objects")`}}}, nil
			case "folder":
				return folderSchema(), nil
			case "slow":
				return sdk.Schema{}, &NoAnswerError{errors.New("start plugin slow: too late")}
			}
			return schema, nil
		},
		Hash: func(path string) (string, error) {
			if filepath.Base(path) == "gone" {
				return "", errors.New("open " + path)
			}
			return "sha256:of " + path, nil
		},
		CheckDataDir: func(dir string) error {
			if filepath.Base(dir) == "toodeep" {
				return errors.New(dir + " has too many bytes")
			}
			return nil
		},
	}
}

// load writes a configuration to a folder of its own, together with the files it names.
func load(t *testing.T, text string) (*Config, Diagnostics) {
	t.Helper()
	return loadWith(t, text, options(t))
}

func loadWith(t *testing.T, text string, opts Options) (*Config, Diagnostics) {
	t.Helper()
	dir := t.TempDir()
	t.Chdir(dir)
	for name, content := range map[string]string{"cairn.hcl": text, "schema.sql": "CREATE TABLE t (n);\n", "insert.sql": "INSERT INTO t VALUES (:record);\n\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return Load("cairn.hcl", opts)
}

const circuit = `
  circuit "sql" {
    schema = file("schema.sql")
    input "in" {
      http {}
      apply = file("insert.sql")
    }
  }
`

const whole = `
host {
  data_dir         = "state"
  shutdown_timeout = "5s"
}
plugin "store" {
  path     = "bin/store"
  checksum = "sha256:E3B0C44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
  env      = { A = "b" }
}
target "offsite" {
  plugin = "store"
  config {
    path   = abspath("elsewhere")
    key    = env("KEY")
    size   = "16MiB"
    wait   = "3s"
    count  = 7
    strict = true
    tags   = ["a", "b"]
    labels = { x = "y" }
  }
}
pipeline "p" {
  circuit "sql" {
    schema    = file("schema.sql")
    min_batch = 5
    input "lines" {
      file {
        path   = "in/*.csv"
        format = "csv"
        follow = true
      }
      apply    = [file("insert.sql"), "SELECT 1"]
      on_error = "stop"
    }
    input "posts" {
      http {}
      apply = "SELECT 2"
    }
  }
  checkpoint {
    interval = "10s"
    keep     = 3
  }
  storage "file" {
    start_from_checkpoint = "latest"
    sync "offsite" {
      push_interval    = "30s"
      push_on_shutdown = true
    }
  }
}
`

func TestAWholeConfigurationComesOutTypedAndWithAbsolutePaths(t *testing.T) {
	cfg, found := load(t, whole)
	if len(found) > 0 {
		t.Fatalf("unexpected:\n%v", found)
	}
	dir := filepath.Dir(cfg.File)
	for what, pair := range map[string][2]any{
		"data_dir":         {cfg.Host.DataDir, filepath.Join(dir, "state")},
		"spool_dir":        {cfg.Host.SpoolDir, filepath.Join(dir, "state", "spool")},
		"listen":           {cfg.Host.Listen, "127.0.0.1:7070"},
		"shutdown_timeout": {cfg.Host.ShutdownTimeout, 5 * time.Second},
		"plugin path":      {cfg.Targets[0].Plugin.Path, filepath.Join(dir, "bin", "store")},
		"checksum":         {cfg.Targets[0].Plugin.Checksum, "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
		"storage path":     {cfg.Pipelines[0].Backend.Path, filepath.Join(dir, "state", "p")},
		"input path":       {cfg.Pipelines[0].Circuit.Inputs[0].File.Path, filepath.Join(dir, "in", "*.csv")},
		"input base":       {cfg.Pipelines[0].Circuit.Inputs[0].File.Base, dir},
		"schema":           {cfg.Pipelines[0].Circuit.Schema, "CREATE TABLE t (n);"},
		"apply":            {strings.Join(cfg.Pipelines[0].Circuit.Inputs[0].Apply, "|"), "INSERT INTO t VALUES (:record);\n|SELECT 1"},
		"http format":      {cfg.Pipelines[0].Circuit.Inputs[1].HTTP.Format, "ndjson"},
		"keep":             {cfg.Pipelines[0].Checkpoint.Keep, 3},
		"from":             {cfg.Pipelines[0].Backend.Start.From, "latest"},
		"push policy":      {cfg.Pipelines[0].Policy().Targets[0].PushEvery, 30 * time.Second},
		"min_batch":        {cfg.Pipelines[0].Policy().MinBatch, 5},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s = %v, want %v", what, pair[0], pair[1])
		}
	}
	blocks, can := cfg.Pipelines[0].Backend.Sync()
	want := Sync{Target: "offsite", Prefix: "p", PushInterval: 30 * time.Second, PushOnShutdown: true, Fencing: "required"}
	if !can || len(blocks) != 1 || blocks[0] != want {
		t.Errorf("sync = %+v, %v", blocks, can)
	}
}

func TestATargetBodyReachesThePluginWholeAndThePublicRedacted(t *testing.T) {
	cfg, _ := load(t, whole)
	raw, err := cfg.Targets[0].Body.JSON()
	if err != nil {
		t.Fatal(err)
	}
	var got storeConfig
	if err := sdk.Decode(raw, &got); err != nil {
		t.Fatal(err)
	}
	if got.Key.Reveal() != "s3cret" || got.Size != 16<<20 || got.Wait != 3*time.Second || got.Count != 7 || !got.Strict || len(got.Tags) != 2 || got.Labels["x"] != "y" || got.Mode != "safe" {
		t.Errorf("the plugin reads %+v", got)
	}
	if got.Path != filepath.Join(filepath.Dir(cfg.File), "elsewhere") {
		t.Errorf("path = %s", got.Path)
	}
	if shown := cfg.Targets[0].Body.Redacted(); shown["key"] != dots || shown["count"] != int64(7) {
		t.Errorf("redacted = %v", shown)
	}
	if strings.Contains(errors.New("x "+cfg.Targets[0].Body.String()).Error(), "s3cret") {
		t.Error("a printed body shows its secret")
	}
}

func TestAPluginsOwnComplaintIsShownAtTheAttribute(t *testing.T) {
	cfg, _ := load(t, whole)
	got := Diagnostics{cfg.Targets[0].Fault("path", "no such folder", "Make it.")}.Error()
	want := `error: cairn.hcl:14:14: no such folder
    14 |     path   = abspath("elsewhere")
       |              ^^^^^^^^^^^^^^^^^^^^
       Make it.`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if unset := cfg.Targets[0].Fault("mode", "no", ""); unset.Line != 13 {
		t.Errorf("an attribute that the file does not set is shown in line %d, want the block's", unset.Line)
	}
}

func TestOverridesTakeThePlaceOfTheFile(t *testing.T) {
	load(t, whole)
	opts := options(t)
	opts.DataDir, opts.Listen = "other", "127.0.0.1:0"
	cfg, found := Load("cairn.hcl", opts)
	if len(found) > 0 {
		t.Fatal(found)
	}
	if want := filepath.Join(filepath.Dir(cfg.File), "other", "p"); cfg.Pipelines[0].Backend.Path != want || cfg.Host.Listen != "127.0.0.1:0" {
		t.Errorf("path %s, listen %s", cfg.Pipelines[0].Backend.Path, cfg.Host.Listen)
	}
}

func TestAPathIsRelativeToTheFileWhereItIsWrittenSo(t *testing.T) {
	for written, relative := range map[string]bool{
		`"in/*.csv"`: true, `"../in.csv"`: true, `abspath("in/*.csv")`: true, `"${abspath("in")}/*.csv"`: true,
		`"/in/*.csv"`: false, `abspath("/in")`: false, `"/${env("KEY")}"`: false,
	} {
		cfg, found := load(t, strings.Replace(whole, `"in/*.csv"`, written, 1))
		if len(found) > 0 {
			t.Fatalf("%s: %v", written, found)
		}
		want := ""
		if relative {
			want = filepath.Dir(cfg.File)
		}
		if got := cfg.Pipelines[0].Circuit.Inputs[0].File.Base; got != want {
			t.Errorf("path = %s: its base is %q, want %q", written, got, want)
		}
	}
}

func TestOneTargetIsReadWithoutTheRestOfTheFile(t *testing.T) {
	load(t, `
target "offsite" {
  plugin = "store"
  config { path = "/x" }
}
target "away" {
  plugin = "gone"
}
pipeline "p" {
  circuit "sql" {
    schema = file("there is no such file.sql")
    input "i" {
      http {}
      apply = env("NOT_SET")
    }
  }
  storage "file" {
    sync "away" {}
    sync "offsite" {
      prefix  = "x/p"
      fencing = "advisory"
    }
  }
}
pipeline "q" {
  circuit "sql" {
    schema = file("nor this.sql")
    input "i" {
      http {}
      apply = "SELECT 1"
    }
  }
  storage "file" {
    sync "away" {}
  }
}
`)
	opts := options(t)
	opts.OnlyTarget = "offsite"
	cfg, found := Load("cairn.hcl", opts)
	if len(found) > 0 {
		t.Fatal(found)
	}
	if len(cfg.Targets) != 1 || cfg.Targets[0].Name != "offsite" || len(cfg.Pipelines) != 1 {
		t.Fatalf("got %+v and %+v", cfg.Targets, cfg.Pipelines)
	}
	blocks, _ := cfg.Pipelines[0].Backend.Sync()
	if want := (Sync{Target: "offsite", Prefix: "x/p", Fencing: "advisory"}); len(blocks) != 1 || blocks[0] != want {
		t.Errorf("sync %+v", blocks)
	}
}

// Without it no offline command could restore what is kept under storage "object".
func TestAPipelineOfObjectStorageIsReadWithItsTargetAndWithoutTheRestOfTheFile(t *testing.T) {
	load(t, `
plugin "gone" {
  env = { A = env("NOT_SET") }
}
target "offsite" {
  plugin = "store"
  config { path = "/x" }
}
target "away" {
  plugin = "gone"
}
`+strings.Replace(pipeline("p", "storage \"object\" {\n target = \"offsite\"\n}"), `file("schema.sql")`, `file("there is no such file.sql")`, 1)+
		pipeline("q", "storage \"object\" {\n target = \"away\"\n}"))
	for _, narrow := range []func(*Options){
		func(o *Options) { o.Only = "p" },
		func(o *Options) { o.OnlyTarget = "offsite" },
	} {
		opts := options(t)
		narrow(&opts)
		cfg, found := Load("cairn.hcl", opts)
		if len(found) > 0 {
			t.Fatal(found)
		}
		if len(cfg.Targets) != 1 || cfg.Targets[0].Name != "offsite" || len(cfg.Pipelines) != 1 || cfg.Pipelines[0].Name != "p" {
			t.Fatalf("got %+v and %+v", cfg.Targets, cfg.Pipelines)
		}
		want := Sync{Target: "offsite", Prefix: "p", Fencing: "required"}
		if got := cfg.Pipelines[0].Backend.Repositories(); len(got) != 1 || got[0] != want {
			t.Errorf("repositories %+v", got)
		}
	}
}

func TestAFileWithoutEndIsNotReadForEver(t *testing.T) {
	_, found := Load("/dev/zero", Options{})
	if !found.HasErrors() || !strings.Contains(found.Error(), "/dev/zero has more than") {
		t.Errorf("got %v", found)
	}
}

func TestAMissingFileIsNamed(t *testing.T) {
	_, found := Load(filepath.Join(t.TempDir(), "none.hcl"), Options{})
	if !found.HasErrors() || !strings.Contains(found.Error(), "none.hcl: no such file") {
		t.Errorf("got %v", found)
	}
}
