package config

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/cairnsync/cairn/sdk"
)

// Body is the config block of a target, checked against its plugin's schema. It prints as dots; only JSON reveals it.
type Body struct {
	values map[string]any
	secret map[string]bool
	places map[string]Diagnostic // where a fault of an attribute is to be shown; "" = the block
	schema *sdk.Schema           // nil = the block has not been checked
}

const dots = "••••••"

// JSON is the body as the plugin reads it, secrets included: for the plugin's process only.
func (b Body) JSON() ([]byte, error) {
	values := b.values
	if values == nil {
		values = map[string]any{}
	}
	text, err := json.Marshal(values)
	if err != nil {
		return nil, fmt.Errorf("encode target configuration: %w", err)
	}
	return text, nil
}

// String is dots, so that no log line and no error can spill a secret.
func (b Body) String() string { return dots }

// GoString is dots as well.
func (b Body) GoString() string { return dots }

// Redacted is the body for a status: every secret as dots.
func (b Body) Redacted() map[string]any {
	shown := map[string]any{}
	for name, value := range b.values {
		if b.secret[name] {
			value = dots
		}
		shown[name] = value
	}
	return shown
}

// Fault places a plugin's own complaint about one of its attributes; an attribute that the file does not set is shown at the block.
func (t Target) Fault(attribute, summary, remedy string) Diagnostic {
	place, ok := t.Body.places[attribute]
	if !ok {
		place = t.Body.places[""]
	}
	place.Severity, place.Summary, place.Remedy = Error, summary, remedy
	return place
}

// Unchecked places at the target's block why its body could not be checked, where the reason lies outside of the file.
func (t Target) Unchecked(summary string) Diagnostic { return t.Body.places[""].unchecked(summary) }

func (d Diagnostic) unchecked(summary string) Diagnostic {
	d.Severity, d.Summary = Unchecked, summary
	d.Remedy = "The file may be in order: try again when the cause is gone. A busy machine may be one."
	return d
}

// Secrets are the values that the plugin's schema calls secret, or of a body that was taken as it is written all texts, for whoever must keep them out
// of what people see.
func (b Body) Secrets() []string {
	var all []string
	for name, value := range b.values {
		if b.secret[name] {
			all = append(all, stringsIn(value)...)
		}
	}
	return all
}

// stringsIn are the texts in a value of JSON.
func stringsIn(value any) []string {
	var all []string
	switch value := value.(type) {
	case string:
		all = append(all, value)
	case []any:
		for _, one := range value {
			all = append(all, stringsIn(one)...)
		}
	case map[string]any:
		for _, one := range value {
			all = append(all, stringsIn(one)...)
		}
	}
	return all
}

// schemas asks each plugin once.
type schemas struct {
	ask   func(Host, Plugin) (sdk.Schema, error)
	host  Host
	known map[string]schemaAnswer
}

type schemaAnswer struct {
	schema sdk.Schema
	err    error
}

func (c *schemas) of(p Plugin) (sdk.Schema, error) {
	if answer, ok := c.known[p.Name]; ok {
		return answer.schema, answer.err
	}
	schema, err := c.ask(c.host, p)
	if c.known == nil {
		c.known = map[string]schemaAnswer{}
	}
	c.known[p.Name] = schemaAnswer{schema, err}
	return schema, err
}

// body checks the config block of a target. Without a way to ask for schemas the block stays unread.
func (s section) body(schemas *schemas, p Plugin) Body {
	body := Body{values: map[string]any{}, secret: map[string]bool{}, places: map[string]Diagnostic{"": diagnostic(Error, s.source, s.at, "", "")}}
	if !checked(schemas.host, p) {
		s.missingChecksum(p)
		return body
	}
	if schemas.ask == nil {
		return body
	}
	schema, err := schemas.of(p)
	if err != nil {
		s.noSchema(p, err)
		if s.opts.Start {
			s.asWritten(body)
		}
		return body
	}
	body.schema = &schema
	seen := len(s.found)
	inner := s.attributes(body, schema)
	inner.refuseUnknown(p, schema)
	for _, a := range schema.Attributes {
		inner.bodyAttribute(body, p, a)
	}
	inner.conceal(body, schema, seen)
	return body
}

// attributes opens the config block of a target, which may be left out.
func (s section) attributes(body Body, schema sdk.Schema) section {
	inner := section{loader: s.loader, at: s.at, spec: specOf(schema)}
	if blocks := s.all("config"); len(blocks) > 0 {
		var found hcl.Diagnostics
		inner.at = blocks[0].DefRange
		inner.attrs, found = blocks[0].Body.JustAttributes()
		s.report(fromHCL(s.source, found).named()...)
		body.places[""] = diagnostic(Error, s.source, inner.at, "", "")
	}
	return inner
}

// conceal takes values out of the source text of the places, and of what was found since there were n faults, where they are secrets, or belong to
// what the schema does not know: that may be a secret under a mistyped name.
func (s section) conceal(body Body, schema sdk.Schema, n int) {
	for name, a := range s.attrs {
		if known, ok := schema.Attribute(name); ok && known.Type != sdk.TypeSecret {
			continue
		}
		value := a.Expr.Range()
		for name, place := range body.places {
			body.places[name] = place.without(s.source, value)
		}
		for i := range s.found[n:] {
			s.found[n+i] = s.found[n+i].without(s.source, value)
			if !documented(schema, s.found[n+i].Remedy) {
				s.found[n+i].Remedy = unquoted(s.found[n+i].Remedy, string(value.SliceBytes(s.source)))
			}
		}
	}
}

// documented says of a remedy that it is the plugin's own text, which knows nothing of what the operator has written.
func documented(schema sdk.Schema, remedy string) bool {
	return slices.ContainsFunc(schema.Attributes, func(a sdk.Attribute) bool { return a.Doc != "" && remedy == a.Doc })
}

// noSchema reports a plugin that does not say what it takes.
func (s section) noSchema(p Plugin, err error) {
	at := diagnostic(Error, s.source, s.where("plugin"), fmt.Sprintf("plugin %q cannot be asked what it takes", p.Name), err.Error())
	if _, own := errors.AsType[*HostFaultError](err); s.opts.Start && !own {
		at.Severity = Warning
		at.Remedy = strings.TrimSuffix(at.Remedy, ".") + ". Until it can, its targets do not work, and everything else does."
		s.report(at)
		return
	}
	if silent, ok := errors.AsType[*NoAnswerError](err); ok {
		at = at.unchecked(fmt.Sprintf("plugin %q gave no answer: %v", p.Name, silent.Err))
	}
	s.report(at)
}

// asWritten takes the values of the config block for what they are, without a schema that could tell which are secret: so all of them are.
func (s section) asWritten(body Body) {
	seen := len(s.found)
	inner := s.attributes(body, sdk.Schema{})
	for name := range inner.attrs {
		v, ok := inner.value(name, cty.DynamicPseudoType)
		if !ok {
			continue
		}
		value, err := asJSON(v)
		if err != nil {
			inner.fault(inner.where(name), fmt.Sprintf("%s cannot be given to a plugin", name), "Write a text, a number, true or false, or a list or map of texts.")
			continue
		}
		body.secret[name], body.values[name] = true, value
	}
	inner.conceal(body, sdk.Schema{}, seen)
}

// asJSON is a value as JSON has it.
func asJSON(v cty.Value) (value any, err error) {
	text, err := ctyjson.Marshal(v, v.Type())
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber() // one of 64 bits stays what it is
	err = d.Decode(&value)
	return value, err
}

// specOf is the schema as the getters of a section read it.
func specOf(schema sdk.Schema) block {
	spec := block{Type: "config"}
	for _, a := range schema.Attributes {
		named := kind(cmp.Or(a.Type, sdk.TypeString)) // a plugin that names none is given text
		enum := a.Enum
		if a.Type == sdk.TypeSecret {
			enum = nil // a fault would show the value, and the values that it could have: the plugin says itself what it refuses
		}
		spec.Attributes = append(spec.Attributes, attribute{Name: a.Name, Kind: named, Required: a.Required, Doc: a.Doc, Enum: enum})
	}
	return spec
}

func (s section) refuseUnknown(p Plugin, schema sdk.Schema) {
	var names []string
	for _, a := range schema.Attributes {
		names = append(names, a.Name)
	}
	for name, a := range s.attrs {
		if _, ok := schema.Attribute(name); !ok {
			s.fault(a.NameRange, fmt.Sprintf("plugin %q has no attribute %q", p.Name, name), fmt.Sprintf("It has: %s.", strings.Join(names, ", ")))
		}
	}
}

func (s section) bodyAttribute(body Body, p Plugin, a sdk.Attribute) {
	body.secret[a.Name] = a.Type == sdk.TypeSecret
	if !s.has(a.Name) {
		if a.Required {
			s.fault(s.at, fmt.Sprintf("plugin %q needs the attribute %q", p.Name, a.Name), a.Doc)
		}
		return
	}
	body.places[a.Name] = diagnostic(Error, s.source, s.where(a.Name), "", "")
	if value, ok := s.bodyValue(a); ok {
		body.values[a.Name] = value
	}
}

// bodyValue is the value as the SDK's decoder reads it from JSON.
func (s section) bodyValue(a sdk.Attribute) (any, bool) {
	faults := len(s.found)
	var value any
	switch a.Type {
	case sdk.TypeBool:
		value = s.boolean(a.Name)
	case sdk.TypeInt:
		value = s.number(a.Name)
	case sdk.TypeList:
		value = s.list(a.Name)
	case sdk.TypeMap:
		value = s.textMap(a.Name)
	case sdk.TypeDuration:
		value = s.text(a.Name)
		if _, err := time.ParseDuration(value.(string)); err != nil && len(s.found) == faults {
			s.fault(s.where(a.Name), fmt.Sprintf("%s is not a duration: %q", a.Name, value), `Write a number with a unit: "500ms", "10s", "5m".`)
		}
	case sdk.TypeSize:
		value = s.text(a.Name)
		if _, err := sdk.ParseSize(value.(string)); err != nil && len(s.found) == faults {
			s.fault(s.where(a.Name), err.Error(), `Write a whole number with a unit: "64KiB", "16MiB".`)
		}
	default:
		value = s.text(a.Name)
	}
	return value, len(s.found) == faults
}

func (s section) number(name string) int64 {
	v, ok := s.value(name, cty.Number)
	if !ok {
		return 0
	}
	n, exact := v.AsBigFloat().Int64()
	if exact != 0 {
		s.fault(s.where(name), fmt.Sprintf("%s is not a whole number of 64 bits", name), s.spec.attribute(name).Doc)
	}
	return n
}

// list is never nil: an empty list is a value, not an absence.
func (s section) list(name string) []string {
	all := []string{}
	v, ok := s.value(name, cty.List(cty.String))
	if !ok {
		return all
	}
	for _, one := range v.AsValueSlice() {
		if one.IsNull() {
			s.fault(s.where(name), fmt.Sprintf("%s has an element that is null", name), "Give it a value or remove it.")
			continue
		}
		all = append(all, one.AsString())
	}
	return all
}
