package config

import (
	"reflect"
	"testing"
	"time"
)

func TestRetentionIsReadInSyncBlocksAndInObjectStorage(t *testing.T) {
	block := "retention {\nmin_count = 7\nmin_age = \"168h\"\nmax_delete = 100\n}\n"
	whole := &Retention{MinCount: 7, MinAge: 168 * time.Hour, MaxDelete: 100}
	for name, row := range map[string]struct {
		text string
		want *Retention
	}{
		"a sync block":           {sync("sync \"t\" {\n" + block + "}"), whole},
		"object storage":         {target + pipeline("p", "storage \"object\" {\ntarget = \"t\"\n"+block+"}"), whole},
		"a count alone":          {sync("sync \"t\" {\nretention { min_count = 1 }\n}"), &Retention{MinCount: 1}},
		"an age alone":           {sync("sync \"t\" {\nretention { min_age = \"1s\" }\n}"), &Retention{MinAge: time.Second}},
		"no block keeps it all":  {sync(`sync "t" {}`), nil},
		"object storage without": {target + pipeline("p", `storage "object" { target = "t" }`), nil},
	} {
		cfg, found := load(t, row.text)
		if found.HasErrors() {
			t.Errorf("%s: %v", name, found)
			continue
		}
		if got := cfg.Pipelines[0].Backend.Repositories()[0].Retention; !reflect.DeepEqual(got, row.want) {
			t.Errorf("%s: %+v, want %+v", name, got, row.want)
		}
	}
}
