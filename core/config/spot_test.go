package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cairnsync/cairn/sdk"
)

// shelves are target blocks, named by their order from "a" on, of a plugin that says which attribute names its folder.
func shelves(dirs ...string) string {
	var text strings.Builder
	for i, dir := range dirs {
		fmt.Fprintf(&text, "target %q {\nplugin = \"folder\"\nconfig {\ndir = abspath(%q)\n}\n}\n", string(rune('a'+i)), dir)
	}
	return text.String()
}

// syncs is file storage that goes to each of the targets.
func syncs(storage string, targets ...string) string {
	for _, target := range targets {
		storage += "\nsync " + target
	}
	return "storage \"file\" {\n" + storage + "\n}"
}

// loadIn is load in a folder that has folders and links in it.
func loadIn(t *testing.T, text string, opts func(*Options)) Diagnostics {
	t.Helper()
	load(t, text)
	err := errors.Join(
		os.MkdirAll("disk/vault/inner", 0o700), os.Symlink("disk/vault", "vault"), os.Symlink("disk/away", "dangling"), os.Symlink("state", "state2"), os.MkdirAll("state", 0o700),
		os.Symlink("loop", "loop"),
	)
	if err != nil {
		t.Fatal(err)
	}
	o := options(t)
	opts(&o)
	_, found := Load("cairn.hcl", o)
	return found
}

const stateHost = "host {\ndata_dir = \"state\"\n}\n"

func TestFoldersThatOverlapByAnyNameAreRefused(t *testing.T) {
	both := syncs("", `"a" {}`, `"b" {}`)
	for _, row := range []struct {
		name, text string
		says       []string // all of one fault; none = there is none
	}{
		{"two targets, one by a link", shelves("disk/vault", "vault") + pipeline("p", both), []string{`prefix "p" on target "b" overlaps "p" of pipeline "p" on target "a": both are the folder `, "/disk/vault/p"}},
		{"also where the folder is not there yet", shelves("disk/vault/new", "vault/new") + pipeline("p", both), []string{"both are the folder ", "/disk/vault/new/p"}},
		{"and where a disk is away", shelves("disk/away", "dangling") + pipeline("p", both), []string{"both are the folder ", "/disk/away/p"}},
		{"also where a switch differs", strings.Replace(shelves("vault", "vault"), `dir =`, "create = true\ndir =", 1) + pipeline("p", both), []string{"both are the folder "}},
		{"a repository in another's folder", shelves("vault", "disk/vault/p") + pipeline("p", both), []string{`prefix "p" on target "b" overlaps "p" of pipeline "p" on target "a": the folder `, "/disk/vault/p/p lies in ", "/disk/vault/p"}},
		{"a repository around another's folder", shelves("vault/p", "vault") + pipeline("p", syncs("", `"a" { prefix = "q" }`, `"b" {}`)), []string{"/disk/vault/p holds ", "/disk/vault/p/q"}},
		{"two folders, one in the other, whose repositories are apart", shelves("vault", "vault/inner") + pipeline("p", both), nil},
		{"one folder and two prefixes", shelves("disk/vault", "vault") + pipeline("p", syncs("", `"a" {}`, `"b" { prefix = "q" }`)), nil},
		{"two folders", shelves("vault", "disk/other") + pipeline("p", both), nil},
		{"a link that leads nowhere but to itself", shelves("loop", "vault") + pipeline("p", both), nil},

		{"a target in data_dir", stateHost + shelves("state/vault") + pipeline("p", syncs("", `"a" {}`)), []string{`the folder of target "a", `, "/state/vault, lies in data_dir ", "outlive the data folder"}},
		{"a target in data_dir by a link", stateHost + shelves("state2/vault") + pipeline("p", syncs("", `"a" {}`)), []string{"/state/vault, lies in data_dir "}},
		{"a target in a data_dir that is a link", strings.Replace(stateHost, "state", "state2", 1) + shelves("state/vault") + pipeline("p", syncs("", `"a" {}`)), []string{"/state/vault, lies in data_dir ", "/state2"}},
		{"a target in the pipeline's own folder", stateHost + shelves("state/p") + pipeline("p", syncs("", `"a" {}`)), []string{"lies in data_dir "}},
		{"a target in the spool", stateHost + shelves("state/spool") + pipeline("p", syncs("", `"a" {}`)), []string{"/state/spool, lies in data_dir "}},
		{"data_dir in a target", "host {\ndata_dir = \"vault/state\"\n}\n" + shelves("disk/vault") + pipeline("p", syncs("", `"a" {}`)), []string{"/disk/vault, holds ", "/vault/state"}},
		{"a spool at the bucket", "host {\nspool_dir = \"vault\"\n}\n" + shelves("disk/vault") + pipeline("p", syncs("", `"a" {}`)), []string{"/disk/vault, is the spool folder ", "/vault", "emptied at every start"}},
		{"a spool in the bucket", "host {\nspool_dir = \"vault/inner\"\n}\n" + shelves("disk/vault") + pipeline("p", syncs("", `"a" {}`)), []string{"/disk/vault, holds the spool folder "}},
		{"a spool that holds data_dir by a link", "host {\ndata_dir = \"vault/state\"\nspool_dir = \"disk/vault\"\n}\n" + pipeline("p", syncs(`path = abspath("disk/other")`)), []string{"spool_dir ", "holds the data folder"}},
		{"a storage path in a target", shelves("vault") + pipeline("p", syncs("path = abspath(\"disk/vault/inner\")", `"a" {}`)), []string{"storage path ", `/inner lies in the folder of target "a", `}},

		{"two storage paths, one by a link", pipeline("p", syncs(`path = abspath("disk/vault")`)) + pipeline("q", syncs(`path = abspath("vault")`)), []string{`/vault overlaps that of pipeline "p"`}},
		{"a storage path that is the spool by a link", "host {\nspool_dir = \"disk/vault\"\n}\n" + pipeline("p", syncs(`path = abspath("vault")`)), []string{"/vault overlaps the spool folder "}},
		{"a storage path that holds data_dir by a link", "host {\ndata_dir = \"disk/vault/state\"\n}\n" + pipeline("p", syncs(`path = abspath("vault")`)), []string{"/vault holds more than one pipeline"}},
		{"two storage paths", pipeline("p", syncs(`path = abspath("disk/vault")`)) + pipeline("q", syncs(`path = abspath("disk/other")`)), nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			found := loadIn(t, row.text, func(*Options) {})
			if len(row.says) == 0 {
				if len(found) > 0 {
					t.Errorf("found:\n%v", found)
				}
				return
			}
			if len(found) != 1 || found[0].Line == 0 || found[0].Remedy == "" {
				t.Fatalf("want one fault with a line and a remedy; found:\n%v", found)
			}
			for _, part := range row.says {
				if !strings.Contains(found.Error(), part) {
					t.Errorf("no %q in\n%v", part, found)
				}
			}
		})
	}
}

// A repository that must be read from, of a file whose targets are at fault, can be.
func TestARestoreDoesNotAskWhereFoldersAre(t *testing.T) {
	text := stateHost + shelves("state/vault", "state2/vault") + pipeline("p", syncs("", `"a" {}`, `"b" {}`))
	if found := loadIn(t, text, func(o *Options) { o.Only = "p" }); found.HasErrors() {
		t.Error(found)
	}
}

// A file system that is away must not keep the other targets from being pushed to.
func TestAFolderThatDoesNotAnswerIsJudgedByItsName(t *testing.T) {
	text := shelves("vault", "disk/vault", "vault/p") + pipeline("p", syncs("", `"a" {}`, `"b" {}`)) + pipeline("q", syncs("", `"c" {}`))
	found := loadIn(t, text, func(o *Options) { o.Look = func(func()) bool { return false } })
	if !found.HasErrors() || !strings.Contains(found.Error(), `on target "c" overlaps "p" of pipeline "p" on target "a"`) || strings.Contains(found.Error(), `on target "b" overlaps`) {
		t.Errorf("names alone: %v", found)
	}
	for _, target := range []string{"a", "b", "c"} {
		if !strings.Contains(found.Error(), fmt.Sprintf("the folder of target %q, ", target)) {
			t.Errorf("target %q is not told to be silent: %v", target, found)
		}
	}
}

// As below a bind mount: the paths have nothing in common, the folders are one.
func TestAFolderIsKnownByMoreThanItsPath(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "x", "p"), 0o700); err != nil {
		t.Fatal(err)
	}
	mounted := func(path string) spot {
		s := spotOf(filepath.Join(dir, path))
		s.path = filepath.Join("/elsewhere", path)
		return s
	}
	for _, row := range []struct{ one, two, how string }{
		{"x", "x", "is, by another name,"},
		{"x/p", "x", "lies in"},
		{"x", "x/p", "holds"},
		{"x/new/a", "x/new", "lies in"},
		{"x/new", "x/new", "is, by another name,"},
		{"x/new", "x/newer", ""},
		{"x/new", "x/p", ""},
		{"new", "newer", ""},
	} {
		if how := mounted(row.one).overlap(spotOf(filepath.Join(dir, row.two))); how != row.how {
			t.Errorf("%s, mounted elsewhere, %q %s; want %q", row.one, how, row.two, row.how)
		}
	}
}

func folderSchema() sdk.Schema {
	return sdk.Schema{Attributes: []sdk.Attribute{{Name: "dir", Type: sdk.TypeString, Required: true, Folder: true, Doc: "Folder."}, {Name: "create", Type: sdk.TypeBool, Doc: "A switch."}}}
}
