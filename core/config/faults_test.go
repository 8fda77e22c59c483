package config

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A row states a rule; the configuration breaks it; every line of want must be found in the diagnostics.
func TestEachFaultIsReportedWithItsLineAndRemedy(t *testing.T) {
	ok := "\n" + pipeline("p", `storage "file" {}`)
	for _, row := range []struct{ name, text, want string }{
		{"an empty file has no pipeline", ``, "no pipeline is configured"},
		{"an unknown attribute is refused", `host { lissten = "x" }` + "\n" + ok, `cairn.hcl:1:8: unsupported argument
Did you mean "listen"?`},
		{"an attribute of a feature that is not built is unknown", `host { api_token = "x" }` + ok, "unsupported argument"},
		{"an unknown block is refused", `pipelines "p" {}` + "\n" + ok, `Did you mean "pipeline"?`},
		{"a second host block is refused", "host {}\nhost {}\n" + ok, `cairn.hcl:2:1: a second host block
the first is in line 1`},
		{"a wrong type is refused", `host { listen = 7 }` + ok, "listen must be a string, not a number"},
		{"null is refused", `host { listen = null }` + ok, "listen is null"},
		{"an address that is none is refused", `host { listen = "here" }` + ok, "listen is not an address"},
		{"an address that others can reach is refused", `host { listen = "0.0.0.0:7070" }` + ok, "not a loopback address"},
		{"an unknown log level is refused", `host { log_level = "loud" }` + ok, "Use one of: trace, debug, info, warn, error."},
		{"a duration without unit is refused", `host { shutdown_timeout = "30" }` + ok, `Write a number with a unit`},
		{"an unset variable is refused", `host { data_dir = env("NOPE") }` + ok, "environment variable NOPE is not set"},
		{"a missing include is refused", `host { data_dir = file("nope.sql") }` + ok, "nope.sql: no such file"},
		{"a name must be plain", pipeline("P p", `storage "file" {}`), `pipeline cannot be named "P p"`},
		{"a name is given once", ok + "\n" + ok, `a second pipeline "p"`},
		{"a pipeline needs a circuit", "pipeline \"p\" {\nstorage \"file\" {}\n}", "a circuit block is missing"},
		{"a pipeline needs a storage", pipeline("p", ""), "a storage block is missing"},
		{"an unknown storage is refused", pipeline("p", `storage "tape" {}`), `no storage of type "tape"`},
		{"object storage needs a target", pipeline("p", `storage "object" {}`), `storage "object" names no target`},
		{"object storage needs a target that exists", pipeline("p", `storage "object" { target = "nowhere" }`), `no target is named "nowhere"`},
		{"object storage has no sync block", target + pipeline("p", "storage \"object\" {\n target = \"t\"\n sync \"t\" {}\n}"), `storage "object" cannot sync`},
		{"object storage has no push interval", target + pipeline("p", "storage \"object\" {\n target = \"t\"\n push_interval = \"1s\"\n}"), `push_interval does not apply to storage "object"`},
		{"object storage starts from the newest commit and nothing else", target + pipeline("p", "storage \"object\" {\n target = \"t\"\n start_from_checkpoint = \"latest\"\n}"), `start_from_checkpoint does not apply to storage "object"`},
		{"a target attribute belongs to object storage", target + pipeline("p", `storage "file" { target = "t" }`), `target belongs to storage "object"`},
		{"an unknown circuit is refused", strings.Replace(ok, `"sql"`, `"python"`, 1), `no circuit of type "python"`},
		{"a standby has something to follow", pipeline("p", "storage \"file\" {}\ninitial = \"standby\""), `cairn.hcl:10:11: pipeline "p" is a standby with nothing to follow
Add pull_interval = "5s" to the sync block`},
		{"memory cannot follow", pipeline("p", "storage \"memory\" {}\ninitial = \"standby\""), "a standby with nothing to follow"},
		{"a standby follows one target", "target \"u\" { plugin = \"store\" }\n" + sync("sync \"t\" { pull_interval = \"5s\" }\nsync \"u\" { pull_interval = \"5s\" }"), `a second pull_interval
A standby follows one target; line`},
		{"a pull interval of zero is refused", sync(`sync "t" { pull_interval = "0s" }`), "pull_interval cannot be zero"},
		{"a pull interval stands in a sync block", pipeline("p", `storage "file" { pull_interval = "5s" }`), "pull_interval belongs in a sync block"},
		{"a seed is a repository on a target that exists", sync("start_from_checkpoint = \"latest\"\nseed \"away\" {}"), `no target is named "away"`},
		{"a pipeline has one seed", sync("start_from_checkpoint = \"latest\"\nseed \"t\" {}\nseed \"t\" {}"), "a second seed block"},
		{"a seed's prefix is made of plain segments", sync("start_from_checkpoint = \"latest\"\nseed \"t\" { prefix = \"a//b\" }"), `prefix cannot be "a//b"`},
		{"a seed's start point is latest or a uuid", sync("start_from_checkpoint = \"latest\"\nseed \"t\" { from = \"newest\" }"), `from cannot be "newest"`},
		{"a seed is not the pipeline's own repository", sync("start_from_checkpoint = \"latest\"\nsync \"t\" {}\nseed \"t\" {}"), `the seed is the pipeline's own repository "p" on target "t"`},
		{"a seed that nothing looks at is refused", sync("sync \"t\" {}\nseed \"t\" { prefix = \"other\" }"), "the seed is never looked at"},
		{"memory does not begin with a seed", pipeline("p", "storage \"memory\" {\nseed \"t\" {}\n}"), `storage "memory" cannot begin with a seed`},
		{"an input needs a source", inputs(`apply = "SELECT 1"`), `cairn.hcl:4:1: input "i" has no source`},
		{"an input has one source", inputs("apply = \"SELECT 1\"\nhttp {}\nfile {\npath = \"x\"\nformat = \"csv\"\n}"), `input "i" has two sources`},
		{"apply holds at least one statement", inputs("apply = []\nhttp {}"), "apply is empty"},
		{"a batch has bounds", strings.Replace(ok, "schema", "max_batch = 0\nschema", 1), "max_batch is out of range"},
		{"two pipelines have two folders", pipeline("p", `storage "file" {}`) + pipeline("q", `storage "file" { path = "p/below" }`), `overlaps that of pipeline "p"`},
		{"a pipeline is kept out of the spool", pipeline("p", `storage "file" { path = "spool" }`), "overlaps the spool folder"},
		{"a pipeline is kept out of what memory storage empties", pipeline("memory", `storage "file" {}`) + pipeline("checkpoints", `storage "memory" {}`), "overlaps the folder of memory storage"},
		{"a pipeline is kept out of where plugins run", pipeline("run", `storage "file" {}`), "overlaps the folder that plugins run from"},
		{"a pipeline's folder does not hold data_dir", pipeline("p", `storage "file" { path = "../.." }`), "holds more than one pipeline"},
		{"a pipeline has a folder of its own below data_dir", pipeline("p", `storage "file" { path = "." }`), "holds more than one pipeline"},
		{"a start point is latest or a uuid", pipeline("p", `storage "file" { start_from_checkpoint = "newest" }`), `start_from_checkpoint cannot be "newest"`},
		{"a start point without targets is worth a warning", pipeline("p", `storage "file" { start_from_checkpoint = "latest" }`), "warning: cairn.hcl"},
		{"a sync block names a target that exists", sync(`sync "away" {}`), `no target is named "away"
name one that exists (t)`},
		{"a target is synced to once", sync("sync \"t\" {}\nsync \"t\" {}"), `a second sync block for target "t"`},
		{"a push interval of zero is refused", sync(`sync "t" { push_interval = "0s" }`), `push_interval cannot be zero
To switch it off, leave it out.`},
		{"a negative push interval is refused", sync(`sync "t" { push_interval = "-1s" }`), "push_interval is out of range: -1s"},
		{"a push interval above ten years is refused", sync(`sync "t" { push_interval = "87601h" }`), "push_interval is out of range: 87601h"},
		{"a duration without quotes is told how it is written", sync(`sync "t" { push_interval = 10 }`), "push_interval must be a duration, not a number"},
		{"and with what", sync(`sync "t" { push_interval = 10 }`), `Write a number with a unit, in quotes: "500ms", "10s"`},
		{"an integer has its article", sync("sync \"t\" {\n retention {\n min_count = \"many\"\n }\n }"), "min_count must be an integer, not a string"},
		{"a push interval that overflows is refused", sync(`sync "t" { push_interval = "9999999999999h" }`), "push_interval is not a duration"},
		{"fencing is required or advisory", sync(`sync "t" { fencing = "off" }`), `fencing cannot be "off"
Use one of: required, advisory.`},
		{"fencing stands in a sync block", pipeline("p", `storage "file" { fencing = "advisory" }`), "fencing belongs in a sync block"},
		{"a prefix is made of plain segments", sync(`sync "t" { prefix = "a//b" }`), `prefix cannot be "a//b"`},
		{"a prefix cannot climb", sync(`sync "t" { prefix = "../b" }`), `prefix cannot be "../b"`},
		{"a prefix has a bound", sync(`sync "t" { prefix = "` + strings.Repeat("a", 201) + `" }`), "at most 200 bytes"},
		{"push_interval stands in a sync block", pipeline("p", `storage "file" { push_interval = "1s" }`), "push_interval belongs in a sync block"},
		{"retention without a rule is refused", sync("sync \"t\" {\nretention {}\n}"), `cairn.hcl:17:1: retention without a rule keeps nothing but the newest commit
Add min_count = 7, min_age = "168h" or both`},
		{"a guard is no rule", sync("sync \"t\" {\nretention { max_delete = 5 }\n}"), "retention without a rule"},
		{"a retention count of zero is refused", sync("sync \"t\" {\nretention { min_count = 0 }\n}"), `min_count is out of range
Give a whole number from 1`},
		{"a negative retention count is refused", sync("sync \"t\" {\nretention { min_count = -1 }\n}"), `cairn.hcl:17:25: min_count is out of range`},
		{"a retention age of zero is refused", sync("sync \"t\" {\nretention { min_age = \"0s\" }\n}"), "min_age cannot be zero"},
		{"a negative retention age is refused", sync("sync \"t\" {\nretention { min_age = \"-1h\" }\n}"), "min_age is out of range: -1h"},
		{"a retention age above ten years is refused", sync("sync \"t\" {\nretention { min_age = \"87601h\" }\n}"), "min_age is out of range: 87601h"},
		{"a guard of nothing is refused", sync("sync \"t\" {\nretention {\nmin_count = 1\nmax_delete = 0\n}\n}"), "max_delete is out of range"},
		{"a sync block has one retention", sync("sync \"t\" {\nretention { min_count = 1 }\nretention { min_count = 2 }\n}"), "a second retention block"},
		{"retention stands in a sync block", pipeline("p", "storage \"file\" {\nretention { min_count = 1 }\n}"), "a retention block belongs in a sync block"},
		{"memory retains nothing", pipeline("p", "storage \"memory\" {\nretention { min_count = 1 }\n}"), `storage "memory" cannot have retention`},
		{"object storage asks as much of a retention block", target + pipeline("p", "storage \"object\" {\ntarget = \"t\"\nretention {}\n}"), "retention without a rule"},
		{"memory has nothing to checkpoint", pipeline("p", "checkpoint {}\nstorage \"memory\" {}"), "a checkpoint block under memory storage"},
		{"memory takes no attribute", pipeline("p", `storage "memory" { path = "x" }`), "unsupported argument"},
		{"a target needs a plugin", `target "t" {}` + "\n" + ok, `The argument "plugin" is required`},
		{"a plugin's name is no path", `target "t" { plugin = "../x" }` + "\n" + ok, `no plugin can be named "../x"`},
		{"a plugin that does not start is named", `target "t" { plugin = "gone" }` + "\n" + ok, `plugin "gone" cannot be asked what it takes
cairn-plugin-gone: no such file`},
		{"a plugin that names no type takes text", "target \"t\" {\nplugin = \"untyped\"\nconfig { port = [9000] }\n}\n" + ok, "port must be a string, not a tuple"},
		{"a plugin that gives no answer is no fault", `target "t" { plugin = "slow" }` + "\n" + ok, `unchecked: cairn.hcl:1:23: plugin "slow" gave no answer: start plugin slow: too late
The file may be in order: try again`},
		{"a body lacks no required attribute", body(``), `plugin "store" needs the attribute "path"`},
		{"a body has no unknown attribute", body("path = \"/x\"\nbukket = 1"), `plugin "store" has no attribute "bukket"
It has: path, key, mode`},
		{"a body has no blocks", body("path = \"/x\"\ninner {}"), `unexpected "inner" block`},
		{"a body's values have the right types", body("path = 7\nstrict = \"maybe\"\ntags = \"a\"\ncount = 1.5"), `path must be a string, not a number
strict must be a bool, not a string
tags must be a list(string), not a string
count is not a whole number`},
		{"a body's enum is closed", body("path = \"/x\"\nmode = \"slow\""), "Use one of: fast, safe."},
		{"a body's durations and sizes are read", body("path = \"/x\"\nwait = \"3\"\nsize = \"16M\""), `wait is not a duration: "3"
unit "M" is not one of`},
		{"a checksum is one", `plugin "x" { checksum = "md5:00" }` + "\n" + ok, `checksum cannot be "md5:00"`},
		{"a memory limit has a unit and a range", `plugin "x" { memory_limit = "1MB" }` + "\n" + ok, `memory_limit is no size in its range: "1MB"
from "128MiB" to "1TiB"`},
		{"a memory limit leaves room to run", `plugin "x" { memory_limit = "16MiB" }` + "\n" + ok, `memory_limit is no size in its range`},
		{"under require_checksums a plugin has one", "host { require_checksums = true }\n" + sync(`sync "t" {}`), `cairn.hcl:3:10: plugin "store" has no checksum
put this line into the block plugin "store": checksum = "sha256:of `},
		{"under require_checksums a plugin block alone is not enough", "host { require_checksums = true }\nplugin \"store\" { path = \"gone\" }\n" + target + ok, `has no checksum, and the host block says require_checksums
Install the plugin; then ` + "`cairn config check --config FILE`" + ` gives the line to add. Now: open `},
		{"under require_checksums nothing is dev", "host { require_checksums = true }\nplugin \"store\" {\ndev = true\nchecksum = \"sha256:" + strings.Repeat("0", 64) + "\"\n}\n" + target + ok, `cairn.hcl:3:7: dev = true under require_checksums
Remove dev and set the checksum`},
		{"a data folder that is known to be unusable is refused", `host { data_dir = "toodeep" }` + ok, `cairn.hcl:1:19: data_dir cannot be
toodeep has too many bytes`},
		{"a spool does not hold the data folder", "host { spool_dir = \"/\" }" + ok, "spool_dir / holds the data folder"},
		{"a syntax error is shown", "pipeline \"p\" {\n", "error: cairn.hcl:"},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, found := load(t, row.text)
			shown := found.Error()
			for _, line := range strings.Split(row.want, "\n") {
				if !strings.Contains(strings.ToLower(shown), strings.ToLower(line)) {
					t.Errorf("missing %q in:\n%s", line, shown)
				}
			}
			for _, one := range found {
				if one.Remedy == "" {
					t.Errorf("no remedy for %q", one.Summary)
				}
			}
		})
	}
}

const target = "target \"t\" {\nplugin = \"store\"\nconfig {\npath = \"/x\"\n}\n}\n"

func pipeline(name, blocks string) string {
	return fmt.Sprintf("pipeline %q {%s%s\n}\n", name, circuit, blocks)
}

func inputs(attributes string) string {
	return "pipeline \"p\" {\ncircuit \"sql\" {\nschema = \"\"\ninput \"i\" {\n" + attributes + "\n}\n}\nstorage \"file\" {}\n}\n"
}

func sync(block string) string {
	return target + pipeline("p", "storage \"file\" {\n"+block+"\n}")
}

func body(attributes string) string {
	return "target \"t\" {\nconfig {\n" + attributes + "\n}\nplugin = \"store\"\n}\n" + pipeline("p", `storage "file" {}`)
}

func TestOnlyTheFileBackendTakesAPushInterval(t *testing.T) {
	for backend, can := range map[BackendType]bool{FileBackend: true, MemoryBackend: false} {
		for _, block := range []string{`sync "t" { push_interval = "1s" }`, `sync "t" {}`} {
			_, found := load(t, strings.Replace(sync(block), `storage "file"`, fmt.Sprintf("storage %q", backend), 1))
			if found.HasErrors() == can {
				t.Errorf("storage %q with %s: %v", backend, block, found)
			}
			if !can && !strings.Contains(found.Error(), `storage "memory" cannot sync`) {
				t.Errorf("storage %q: %v", backend, found)
			}
		}
		_, found := load(t, pipeline("p", fmt.Sprintf("storage %q {\npush_interval = \"1s\"\n}", backend)))
		if !found.HasErrors() || !strings.Contains(found.Error(), "push_interval") {
			t.Errorf("a bare push_interval under storage %q: %v", backend, found)
		}
		if _, got := (Backend{Type: backend}).Sync(); got != can {
			t.Errorf("Backend.Sync() of %q = %v", backend, got)
		}
	}
}

func TestPrefixesOnOneTargetDoNotOverlap(t *testing.T) {
	to := func(name, target, prefix string) string {
		return pipeline(name, fmt.Sprintf("storage \"file\" {\nsync %q {\nprefix = %q\n}\n}", target, prefix))
	}
	targets := target + strings.NewReplacer(`"t"`, `"u"`, "/x", "/y").Replace(target)
	for _, row := range []struct {
		a, b    string
		overlap bool
	}{
		{"x", "x", true}, {"x", "x/y", true}, {"x/y", "x", true}, {"x", "xy", false}, {"x/a", "x/b", false},
	} {
		_, found := load(t, targets+to("p", "t", row.a)+to("q", "t", row.b))
		if found.HasErrors() != row.overlap {
			t.Errorf("%q and %q: %v", row.a, row.b, found)
		}
		if _, found := load(t, targets+to("p", "t", row.a)+to("q", "u", row.b)); found.HasErrors() {
			t.Errorf("%q and %q on two targets: %v", row.a, row.b, found)
		}
	}
}

func TestAPushIntervalShorterThanTheCheckpointIntervalIsAWarning(t *testing.T) {
	text := strings.Replace(sync(`sync "t" { push_interval = "1s" }`), "storage", "checkpoint { interval = \"10s\" }\nstorage", 1)
	_, found := load(t, text)
	if len(found) != 1 || found[0].Severity != Warning || found[0].Line == 0 {
		t.Errorf("got %v", found)
	}
}

func TestAFaultInASecretDoesNotShowIt(t *testing.T) {
	for name, text := range map[string]string{
		"an attribute of type secret":                 body("path = \"/x\"\nkey = [\"hunter2\"]"),
		"a secret under a mistyped name":              body("path = \"/x\"\nkay = \"hunter2\""),
		"a fault beside a secret in one line":         "target \"t\" {\nplugin = \"store\"\nconfig { key = \"hunter2\" }\n}\n" + pipeline("p", `storage "file" {}`),
		"a mistyped secret that spans several lines":  body("path = \"/x\"\nkay = [\n\"hunter2\", env(\"NOPE\")]"),
		"a config block that was forgotten":           "target \"t\" {\nplugin = \"store\"\nkey = \"hunter2\"\n}\n" + pipeline("p", `storage "file" {}`),
		"an environment under a mistyped name":        "plugin \"x\" {\nevn = { A = \"hunter2\" }\n}\n" + pipeline("p", `storage "file" {}`),
		"an environment that is a block in one line":  "plugin \"x\" {\nenv { A = \"hunter2\" }\n}\n" + pipeline("p", `storage "file" {}`),
		"a block within a config block":               body("path = \"/x\"\ncredentials { key = \"hunter2\" }"),
		"a secret without quotes":                     body("path = \"/x\"\nkey = hunter2"),
		"a secret without quotes that is called":      body("path = \"/x\"\nkey = hunter2(\"x\")"),
		"an environment without quotes":               "plugin \"x\" {\nenv = { A = hunter2 }\n}\n" + pipeline("p", `storage "file" {}`),
		"a secret of which a plugin lists the values": strings.Replace(body("pin = \"hunter2\"\nmode = \"fast\""), `"store"`, `"listed"`, 1),
		"a plugin's environment":                      "plugin \"x\" {\nenv = { A = [\"hunter2\"] }\n}\n" + pipeline("p", `storage "file" {}`),
	} {
		_, found := load(t, text)
		if shown := found.Error(); !found.HasErrors() || strings.Contains(shown, "hunter2") {
			t.Errorf("%s: %s", name, shown)
		}
	}
	cfg, _ := load(t, body("path = \"/x\"\nkey = \"hunter2\""))
	if shown := (Diagnostics{cfg.Targets[0].Fault("key", "no such key", "")}).Error(); strings.Contains(shown, "hunter2") {
		t.Errorf("the plugin's complaint: %s", shown)
	}
}

// The text of a plugin knows nothing of what the operator has written, though it may name the same words.
func TestWhatAPluginSaysOfItsAttributesIsShownWhole(t *testing.T) {
	_, found := load(t, strings.Replace(body("dri = \"objects\""), `"store"`, `"shelf"`, 1))
	if text := found.Error(); !strings.Contains(text, `absolute: dir = abspath("objects")`) || strings.Contains(text, `dri = "objects"`) {
		t.Errorf("%s", text)
	}
}

// What does not parse has no attributes: which of it is a value is anybody's guess.
func TestAFaultOfTheSyntaxShowsNoValue(t *testing.T) {
	for text, shown := range map[string]string{
		"key = \"hunter2":                             "key …",
		"\tkey = \"hunter2\" \"":                      "\tkey …",
		"key = \"\\zhunter2\"":                        "key …",
		"key = \"x%{hunter2}\"":                       "key …",
		"key = [hunter2.1.2]":                         "key …",
		"key = 'hunter2'":                             "key …",
		"key: hunter2":                                "",
		"key hunter2":                                 "",
		"\"key\" = \"hunter2\"":                       "",
		"key = <<E\nhunter2 ${\nE\n":                  "",
		"key = hunter2/":                              "key …",
		"key = [\"hunter2\" \"x\"]":                   "key …",
		"key = {\nA = \"x\"\nB = hunter2 \"y\"\n}":    "B …",
		"env { A = \"hunter2\" B = 1 }":               "env …",
		"key = hunter2 }\nkey = \"hunter2\"":          "key …",
		"key = [\n\"a\",\n\"hunter2\" b,\n]":          "",
		"key = \"hunter2\"; mode = \"safe\"":          "key …",
		"target \"t\" \"hunter2\nkey = \"hunter2\"\n": "target …",
		"target \"t\" {":                              "target \"t\" {",
	} {
		_, found := load(t, "\n"+text)
		if !found.HasErrors() || strings.Contains(fmt.Sprintf("%+v %s", found, found.Error()), "hunter2") {
			t.Errorf("%q: %s", text, found.Error())
		}
		if found[0].Snippet != shown || found[0].Line < 2 {
			t.Errorf("%q: line %d is shown as %q, want %q", text, found[0].Line, found[0].Snippet, shown)
		}
	}
}

func TestOneFaultIsToldOnce(t *testing.T) {
	for name, text := range map[string]string{
		"a duration that is a number":       sync(`sync "t" { push_interval = 30 }`),
		"a target whose plugin has no name": strings.Replace(sync(`sync "t" {}`), `"store"`, `"../x"`, 1),
	} {
		if _, found := load(t, text); len(found) != 1 {
			t.Errorf("%s: %d faults: %v", name, len(found), found)
		}
	}
}

// What a fault leaves unknown is not asked after, and not told as a second one.
func TestAFaultHidesNoOtherOfItsBlockAndMakesNone(t *testing.T) {
	const settings = "prefix = \"UP\"\nfencing = \"maybe\"\nretention { min_count = 0 }"
	inBlock := []string{"prefix cannot be \"UP\"", "fencing cannot be \"maybe\"", "min_count is out of range"}
	for _, row := range []struct {
		name, text string
		want       []string
	}{
		{
			"a sync block for an unknown target", sync("sync \"away\" {\npush_interval = \"soon\"\npull_interval = \"1x\"\n" + settings + "\n}\n}\ninitial = \"standby\"\ncheckpoint {"),
			append([]string{"no target is named \"away\"", "push_interval is not a duration: \"soon\"", "pull_interval is not a duration: \"1x\""}, inBlock...),
		},
		{"object storage without a target", pipeline("p", "storage \"object\" {\n"+settings+"\n}"), append([]string{`storage "object" names no target`}, inBlock...)},
		{"object storage whose target is no text", pipeline("p", "storage \"object\" {\ntarget = 5\n"+settings+"\n}"), append([]string{"target must be a string, not a number"}, inBlock...)},
		{
			"a seed on an unknown target", sync("seed \"away\" {\nprefix = \"UP\"\nfrom = \"newest\"\n}"),
			[]string{"no target is named \"away\"", "prefix cannot be \"UP\"", "from cannot be \"newest\"", "the seed is never looked at"},
		},
		{
			"a start point that is none", sync("start_from_checkpoint = \"newest\"\nseed \"away\" {}"),
			[]string{"start_from_checkpoint cannot be \"newest\"", "no target is named \"away\""},
		},
		{
			"a plugin without a name", "plugin \"X x\" {\nchecksum = \"md5\"\nmemory_limit = \"1\"\n}\n" + pipeline("p", `storage "file" {}`),
			[]string{"plugin cannot be named \"X x\"", "checksum cannot be \"md5\"", "memory_limit is no size in its range: \"1\""},
		},
		{"a path that is no text", inputs("apply = \"SELECT 1\"\nfile {\npath = 5\nformat = \"csv\"\n}"), []string{"path must be a path, not a number"}},
	} {
		_, found := load(t, row.text)
		var got []string
		for _, one := range found {
			got = append(got, one.Summary)
			if one.Line == 0 || one.Snippet == "" || one.Remedy == "" {
				t.Errorf("%s: a fault without its line, its source or its remedy: %+v", row.name, one)
			}
		}
		slices.Sort(got)
		slices.Sort(row.want)
		if !slices.Equal(got, row.want) {
			t.Errorf("%s: told\n%s\nwant\n%s", row.name, strings.Join(got, "\n"), strings.Join(row.want, "\n"))
		}
	}
}

// The golden file shows what a person sees when many things are wrong at once.
func TestAllFaultsOfAFileAreShownInOneRun(t *testing.T) {
	source, err := os.ReadFile("testdata/faults.hcl")
	if err != nil {
		t.Fatal(err)
	}
	golden, err := filepath.Abs("testdata/faults.txt")
	if err != nil {
		t.Fatal(err)
	}
	_, found := load(t, string(source))
	got := found.Error() + "\n"
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
