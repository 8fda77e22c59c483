package config

import (
	"fmt"
	"maps"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/cairnsync/cairn/sdk"
)

// samePlace tells that two targets are one place of one store. What an attribute means only its plugin knows, so two targets count as one only
// when nothing differs that could tell two places apart: one executable, one environment, one value of each attribute.
func (t Target) samePlace(o Target) bool {
	if !t.sound || !o.sound || t.Body.schema == nil || o.Body.schema == nil || t.Plugin.Path != o.Plugin.Path || !maps.Equal(t.Plugin.Env, o.Plugin.Env) {
		return false
	}
	return maps.Equal(t.Body.place(), o.Body.place())
}

// place is what of a body may say where its store is: all but switches, times and sizes, which say how it is used.
func (b Body) place() map[string]string {
	place := map[string]string{}
	for _, a := range b.schema.Attributes {
		switch a.Type {
		case sdk.TypeBool, sdk.TypeDuration, sdk.TypeSize:
			continue
		}
		place[a.Name] = plain(a.Default)
		if value, ok := b.values[a.Name]; ok {
			place[a.Name] = spelled(value)
		}
	}
	return place
}

func spelled(value any) string {
	switch v := value.(type) {
	case string:
		return plain(v)
	case int64:
		return strconv.FormatInt(v, 10)
	}
	return fmt.Sprintf("%q", value) // a list, or a map in the order of its keys
}

// plain is a path or an address without what does not change its meaning.
func plain(text string) string {
	if filepath.IsAbs(text) {
		return filepath.Clean(text)
	}
	return strings.TrimRight(text, "/")
}
