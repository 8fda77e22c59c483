package config

import (
	"fmt"
	"strings"
	"testing"
)

// twoTargets are blocks "t" and "u" of one plugin.
func twoTargets(t, u string) string {
	return fmt.Sprintf("target \"t\" {\nplugin = \"store\"\nconfig {\n%s\n}\n}\ntarget \"u\" {\nplugin = \"store\"\nconfig {\n%s\n}\n}\n", t, u)
}

func TestTwoTargetsThatAreOnePlaceTakeOneRepository(t *testing.T) {
	both := pipeline("p", "storage \"file\" {\nsync \"t\" {}\nsync \"u\" {}\n}")
	to := func(name, storage string) string { return pipeline(name, storage) }
	for _, row := range []struct {
		name      string
		targets   string
		pipelines string
		fault     bool
	}{
		{"one pipeline, the same folder twice", twoTargets(`path = "/x"`, `path = "/x"`), both, true},
		{"one pipeline, the same folder written in two ways", twoTargets(`path = "/x"`, `path = "/y/../x/"`), both, true},
		{"one pipeline, the same folder by abspath", twoTargets(`path = abspath("x")`, `path = abspath("./y/../x")`), both, true},
		{"one duration and one size written in two ways", twoTargets("path = \"/x\"\nwait = \"60s\"\nsize = \"1024KiB\"", "path = \"/x\"\nwait = \"1m\"\nsize = \"1MiB\""), both, true},
		{"a switch and a number that are written as they are left out", twoTargets(`path = "/x"`, "path = \"/x\"\nstrict = false\ncount = 0"), both, true},
		{"a default that is written does not make it another one", twoTargets(`path = "/x"`, "path = \"/x\"\nmode = \"safe\""), both, true},
		{
			"two pipelines, one of them inside the other", twoTargets(`path = "/x"`, `path = "/x"`),
			to("p", "storage \"file\" {\nsync \"t\" {}\n}") + to("q", "storage \"file\" {\nsync \"u\" { prefix = \"p/q\" }\n}"), true,
		},
		{
			"two pipelines, one of them with object storage", twoTargets(`path = "/x"`, `path = "/x"`),
			to("p", "storage \"file\" {\nsync \"t\" {}\n}") + to("q", "storage \"object\" {\ntarget = \"u\"\nprefix = \"p\"\n}"), true,
		},

		{"two folders", twoTargets(`path = "/x"`, `path = "/x2"`), both, false},
		{"a switch may choose between two", twoTargets(`path = "/x"`, "path = \"/x\"\nstrict = true"), both, false},
		{"so may a duration", twoTargets(`path = "/x"`, "path = \"/x\"\nwait = \"3s\""), both, false},
		{"and a size", twoTargets(`path = "/x"`, "path = \"/x\"\nsize = \"1MiB\""), both, false},
		{"one may be another account's", twoTargets("path = \"/x\"\nkey = \"a\"", "path = \"/x\"\nkey = \"b\""), both, false},
		{"one may be at another port", twoTargets("path = \"/x\"\ncount = 1", "path = \"/x\"\ncount = 2"), both, false},
		{"one may be on another server", twoTargets("path = \"/x\"\ntags = [\"a b\"]", "path = \"/x\"\ntags = [\"a\", \"b\"]"), both, false},
		{
			"two pipelines with a prefix each", twoTargets(`path = "/x"`, `path = "/x"`),
			to("p", "storage \"file\" {\nsync \"t\" {}\n}") + to("q", "storage \"file\" {\nsync \"u\" {}\n}"), false,
		},
		{
			"one pipeline with two repositories in one store", twoTargets(`path = "/x"`, `path = "/x"`),
			to("p", "storage \"file\" {\nsync \"t\" {}\nsync \"u\" { prefix = \"second\" }\n}"), false,
		},
		{
			"a seed only reads", twoTargets(`path = "/x"`, `path = "/x"`),
			to("p", "storage \"file\" {\nsync \"t\" {}\n}") + to("q", "storage \"file\" {\nstart_from_checkpoint = \"latest\"\nseed \"u\" { prefix = \"p\" }\n}"), false,
		},
		{
			"a standby only reads", twoTargets(`path = "/x"`, `path = "/x"`),
			to("p", "storage \"file\" {\nsync \"t\" {}\n}") + to("q", "storage \"file\" {\nsync \"u\" {\nprefix = \"p\"\npull_interval = \"5s\"\n}\n}\ninitial = \"standby\""), false,
		},
		{"a target that is at fault itself is not compared", twoTargets("", ""), both, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, found := load(t, row.targets+row.pipelines)
			if got := strings.Contains(found.Error(), "the targets are one place"); got != row.fault {
				t.Errorf("a fault: %v, want %v; found:\n%v", got, row.fault, found)
			}
		})
	}
}

func TestTwoPluginsOfOneFileAreOnePluginUnlessTheirEnvironmentsDiffer(t *testing.T) {
	plugins := func(env string) string {
		return "plugin \"store\" {\npath = \"bin/s\"\n}\nplugin \"other\" {\npath = \"bin/s\"\n" + env + "\n}\n"
	}
	text := strings.Replace(twoTargets(`path = "/x"`, `path = "/x"`), `plugin = "store"`, `plugin = "other"`, 1) +
		pipeline("p", "storage \"file\" {\nsync \"t\" {}\nsync \"u\" {}\n}")
	if _, found := load(t, plugins("")+text); !strings.Contains(found.Error(), "the targets are one place") {
		t.Errorf("one environment: %v", found)
	}
	if _, found := load(t, plugins(`env = { ENDPOINT = "elsewhere" }`)+text); found.HasErrors() {
		t.Errorf("two environments: %v", found)
	}
}

func TestTheFaultOfOnePlaceNamesBothBlocksAndBothTargets(t *testing.T) {
	_, found := load(t, twoTargets(`path = "/x"`, `path = "/x/"`)+pipeline("p", "storage \"file\" {\nsync \"t\" {}\nsync \"u\" {}\n}"))
	want := `error: cairn.hcl:23:1: prefix "p" on target "u" overlaps "p" of pipeline "p" on target "t": the targets are one place
    23 | sync "u" {}
       | ^^^^^^^^
       Line 22 has the other; the targets in lines 3 and 9 name one plugin with one configuration. Give one of the targets a place of its own, or one of the repositories a prefix outside the other.`
	if got := found.Error(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// A repository that must be read from, of a file whose targets are at fault, can be.
func TestARestoreDoesNotAskWhetherTargetsAreOnePlace(t *testing.T) {
	load(t, twoTargets(`path = "/x"`, `path = "/x"`)+pipeline("p", "storage \"file\" {\nsync \"t\" {}\nsync \"u\" {}\n}"))
	opts := options(t)
	opts.Only = "p"
	if _, found := Load("cairn.hcl", opts); found.HasErrors() {
		t.Error(found)
	}
}
