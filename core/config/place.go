package config

import (
	"fmt"
	"maps"
	"path/filepath"
	"strconv"
	"strings"
	"time"

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

// place is all of a body: of an attribute only its plugin knows whether it says where the store is or how it is used.
func (b Body) place() map[string]string {
	place := map[string]string{}
	for _, a := range b.schema.Attributes {
		value, ok := b.values[a.Name]
		if !ok {
			value = a.Default
		}
		place[a.Name] = spelled(a.Type, value)
	}
	return place
}

// spelled is a value in one of the ways that it may be written, the same for each that means the same.
func spelled(t sdk.Type, value any) string {
	text, ok := value.(string)
	if !ok {
		return fmt.Sprintf("%#v", value) // a list, or a map in the order of its keys; a number or a switch
	}
	// Text of the other types is a default, or was checked: what does not parse is "", the zero value.
	switch t {
	case sdk.TypeBool:
		b, _ := strconv.ParseBool(text)
		return spelled(t, b)
	case sdk.TypeInt:
		n, _ := strconv.ParseInt(text, 10, 64)
		return spelled(t, n)
	case sdk.TypeDuration:
		d, _ := time.ParseDuration(text)
		return d.String()
	case sdk.TypeSize:
		size, _ := sdk.ParseSize(text)
		return size.String()
	}
	return plain(text)
}

// plain is a path or an address without what does not change its meaning.
func plain(text string) string {
	if filepath.IsAbs(text) {
		return filepath.Clean(text)
	}
	return strings.TrimRight(text, "/")
}
