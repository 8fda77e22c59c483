package host

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/cairnsync/cairn/sdk"
)

// settingsJSON is a target's configuration from "name=value" settings, for a plugin that is examined without a configuration file. A list
// takes its setting once for each element, a map takes "name.key=value". The values are read as the schema says; whether they can be used is
// for the plugin to say.
func settingsJSON(schema sdk.Schema, settings []string) ([]byte, error) {
	body := map[string]any{}
	for _, setting := range settings {
		name, value, ok := strings.Cut(setting, "=")
		if !ok {
			return nil, fmt.Errorf("setting %q: want NAME=VALUE", setting)
		}
		name, key, _ := strings.Cut(name, ".")
		attr, known := schema.Attribute(name)
		if !known {
			return nil, fmt.Errorf("setting %q: this plugin has no such attribute; it has: %s", name, attributeNames(schema))
		}
		if err := addSetting(body, attr, key, value); err != nil {
			return nil, fmt.Errorf("setting %q: %w", name, err)
		}
	}
	return json.Marshal(body)
}

// away is body, the target's configuration, with the settings of a store that is away in place of its own.
func (c Candidate) away(schema sdk.Schema, body []byte) ([]byte, error) {
	if len(c.Away) == 0 {
		return nil, nil
	}
	changes, err := settingsJSON(schema, c.Away)
	if err != nil {
		return nil, fmt.Errorf("a store that is away: %w", err)
	}
	settings := map[string]json.RawMessage{}
	for _, object := range [][]byte{body, changes} { // the second replaces what it names
		if err := json.Unmarshal(object, &settings); err != nil {
			return nil, fmt.Errorf("a store that is away: %w", err)
		}
	}
	return json.Marshal(settings)
}

// settingSecrets are the values of the settings that the schema calls secret, for whoever must keep them out of what people see.
func settingSecrets(schema sdk.Schema, settings []string) []string {
	var all []string
	for _, setting := range settings {
		name, value, _ := strings.Cut(setting, "=")
		if attr, known := schema.Attribute(name); known && attr.Type == sdk.TypeSecret {
			all = append(all, value)
		}
	}
	return all
}

func attributeNames(schema sdk.Schema) string {
	var names []string
	for _, attr := range schema.Attributes {
		names = append(names, attr.Name)
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

func addSetting(body map[string]any, attr sdk.Attribute, key, value string) error {
	var err error
	switch attr.Type {
	case sdk.TypeBool:
		body[attr.Name], err = strconv.ParseBool(value)
	case sdk.TypeInt:
		body[attr.Name], err = strconv.ParseInt(value, 10, 64)
	case sdk.TypeList:
		list, _ := body[attr.Name].([]string)
		body[attr.Name] = append(list, value)
	case sdk.TypeMap:
		values, ok := body[attr.Name].(map[string]string)
		if !ok {
			values = map[string]string{}
		}
		values[key] = value
		body[attr.Name] = values
	default: // durations, sizes and secrets travel as text
		body[attr.Name] = value
	}
	switch {
	case err != nil && attr.Type == sdk.TypeBool:
		return fmt.Errorf("want true or false, not %q", value)
	case err != nil:
		return fmt.Errorf("want a whole number, not %q", value)
	}
	return nil
}
