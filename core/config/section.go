package config

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/cairnsync/cairn/sdk"
)

// section is one block of the file, opened against its spec. A getter that finds a fault reports it and returns the zero value, so that
// one run finds all faults.
type section struct {
	*loader
	spec   block
	at     hcl.Range // the block's header
	label  string
	labels hcl.Range
	attrs  hcl.Attributes
	blocks hcl.Blocks
}

// open checks a body against its spec: unknown and missing names, too many and too few blocks.
func (l *loader) open(spec block, header *hcl.Block, body hcl.Body) section {
	s := section{loader: l, spec: spec, at: body.MissingItemRange()}
	if header != nil {
		s.at = header.DefRange
		if len(header.Labels) > 0 {
			s.label, s.labels = header.Labels[0], header.LabelRanges[0]
		}
	}
	content, found := body.Content(spec.schema())
	l.report(fromHCL(l.source, found).named()...)
	s.attrs, s.blocks = content.Attributes, content.Blocks
	for _, inner := range spec.Blocks {
		s.count(inner)
	}
	return s
}

func (s section) count(inner block) {
	of := s.all(inner.Type)
	switch {
	case inner.Required && len(of) == 0:
		s.fault(s.at, fmt.Sprintf("a %s block is missing", inner.Type), fmt.Sprintf("Add one: %s", inner.Doc))
	case inner.Once && len(of) > 1:
		s.fault(of[1].DefRange, fmt.Sprintf("a second %s block", inner.Type), fmt.Sprintf("Only one may stand here; the first is in line %d. Remove one.", of[0].DefRange.Start.Line))
	}
}

// all are the inner blocks of one type, in the order of the file.
func (s section) all(blockType string) []*hcl.Block {
	var of []*hcl.Block
	for _, b := range s.blocks {
		if b.Type == blockType {
			of = append(of, b)
		}
	}
	return of
}

// inner opens the first inner block of a type.
func (s section) inner(blockType string) (section, bool) {
	of := s.all(blockType)
	if len(of) == 0 {
		return section{}, false
	}
	return s.load(of[0]), true
}

func (s section) load(b *hcl.Block) section { return s.open(s.spec.block(b.Type), b, b.Body) }

// has tells whether the file sets an attribute.
func (s section) has(name string) bool { return s.attrs[name] != nil }

// where is the place to point at for an attribute: its value, or the block when it is left out.
func (s section) where(name string) hcl.Range {
	if a := s.attrs[name]; a != nil {
		return a.Expr.Range()
	}
	return s.at
}

// value evaluates an attribute and converts it; false when it is left out, null or at fault.
func (s section) value(name string, want cty.Type) (cty.Value, bool) {
	a := s.attrs[name]
	if a == nil {
		return cty.NilVal, false
	}
	got, found := a.Expr.Value(s.eval)
	if s.report(fromHCL(s.source, found)...); found.HasErrors() {
		return cty.NilVal, false
	}
	if got.IsNull() {
		s.fault(s.where(name), fmt.Sprintf("%s is null", name), "Give it a value or leave it out.")
		return cty.NilVal, false
	}
	converted, err := convert.Convert(got, want)
	if err != nil || !converted.IsWhollyKnown() || want == cty.String && got.Type() != cty.String {
		spec := s.spec.attribute(name)
		remedy := spec.Doc
		if spec.Kind == duration {
			remedy = durationForm
		}
		s.fault(s.where(name), fmt.Sprintf("%s must be %s, not %s", name, withArticle(string(spec.Kind)), withArticle(got.Type().FriendlyName())), remedy)
		return cty.NilVal, false
	}
	return converted, true
}

func (s section) text(name string) string {
	spec := s.spec.attribute(name)
	v, ok := s.value(name, cty.String)
	if !ok {
		return spec.Default
	}
	got := v.AsString()
	if spec.Enum != nil && !slices.Contains(spec.Enum, got) {
		s.fault(s.where(name), fmt.Sprintf("%s cannot be %q", name, got), "Use one of: "+strings.Join(spec.Enum, ", ")+".")
		return spec.Default
	}
	return got
}

func (s section) boolean(name string) bool {
	if v, ok := s.value(name, cty.Bool); ok {
		return v.True()
	}
	return s.spec.attribute(name).Default == "true"
}

// integer is the default, or 0, when the attribute is left out.
func (s section) integer(name string) int {
	spec := s.spec.attribute(name)
	fallback := 0
	if spec.Default != "" {
		var err error
		if fallback, err = strconv.Atoi(spec.Default); err != nil {
			panic("config: default of " + name + ": " + err.Error()) // a mistake in spec.go, found by any test that loads a file
		}
	}
	v, ok := s.value(name, cty.Number)
	if !ok {
		return fallback
	}
	n, exact := v.AsBigFloat().Int64()
	if exact != 0 || n < spec.Min || n > spec.Max {
		s.fault(s.where(name), fmt.Sprintf("%s is out of range", name), fmt.Sprintf("Give a whole number from %d to %d.", spec.Min, spec.Max))
		return fallback
	}
	return int(n)
}

// durationForm is the remedy for what is not one.
const durationForm = `Write a number with a unit, in quotes: "500ms", "10s", "5m", "24h".`

// withArticle is the name of a type as it stands in a sentence.
func withArticle(kind string) string {
	if strings.ContainsRune("aeiou", rune(kind[0])) {
		return "an " + kind
	}
	return "a " + kind
}

// duration is the default, or 0, when the attribute is left out.
func (s section) duration(name string) time.Duration {
	spec := s.spec.attribute(name)
	written := spec.Default
	if s.has(name) {
		v, ok := s.value(name, cty.String)
		if !ok {
			return 0
		}
		written = v.AsString()
	} else if written == "" {
		return 0
	}
	got, err := time.ParseDuration(written)
	switch {
	case err != nil:
		s.fault(s.where(name), fmt.Sprintf("%s is not a duration: %q", name, written), durationForm)
		return 0
	case got == 0:
		s.fault(s.where(name), fmt.Sprintf("%s cannot be zero", name), "To switch it off, leave it out.")
		return 0
	case got < spec.Least || got > maxDuration:
		s.fault(s.where(name), fmt.Sprintf("%s is out of range: %s", name, written), fmt.Sprintf("Give at least %s and at most ten years (%s).", spec.Least, maxDuration))
		return 0
	}
	return got
}

// path is absolute: a relative one stands under base.
func (s section) path(name, base string) string {
	seen := len(s.found)
	written := s.text(name)
	if written == "" {
		if s.has(name) && len(s.found) == seen {
			s.fault(s.where(name), fmt.Sprintf("%s is empty", name), "Give a path or leave it out.")
		}
		return ""
	}
	return under(base, written)
}

// base is the folder that a path is written relative to, "" where it is written absolute. abspath("x") is as relative as "x".
func (s section) base(name, base string) string {
	a := s.attrs[name]
	if a == nil {
		return ""
	}
	written, found := a.Expr.Value(asWritten(s.eval)) // the getter of the path itself reports what is wrong with it
	if found.HasErrors() || written.Type() != cty.String || written.IsNull() || !written.IsKnown() || filepath.IsAbs(written.AsString()) {
		return ""
	}
	return base
}

// texts takes one string or a list of at least one.
func (s section) texts(name string) []string {
	a := s.attrs[name]
	if a == nil {
		return nil
	}
	got, found := a.Expr.Value(s.eval)
	if found.HasErrors() || got.Type() == cty.String {
		if v, ok := s.value(name, cty.String); ok {
			return []string{v.AsString()}
		}
		return nil
	}
	v, ok := s.value(name, cty.List(cty.String))
	if !ok {
		return nil
	}
	if v.LengthInt() == 0 {
		s.fault(s.where(name), fmt.Sprintf("%s is empty", name), "Give at least one.")
	}
	var all []string
	for _, one := range v.AsValueSlice() {
		if one.IsNull() {
			s.fault(s.where(name), fmt.Sprintf("%s has an element that is null", name), "Give it a value or remove it.")
			continue
		}
		all = append(all, one.AsString())
	}
	return all
}

func (s section) textMap(name string) map[string]string {
	v, ok := s.value(name, cty.Map(cty.String))
	if !ok {
		return nil
	}
	all := map[string]string{}
	for key, one := range v.AsValueMap() {
		if one.IsNull() {
			s.fault(s.where(name), fmt.Sprintf("%s has no value for %q", name, key), "Give it a value or remove it.")
			continue
		}
		all[key] = one.AsString()
	}
	return all
}

// size is a number of bytes, 0 when the attribute is left out or at fault.
func (s section) size(name string) int64 {
	spec := s.spec.attribute(name)
	v, ok := s.value(name, cty.String)
	if !ok {
		return 0
	}
	got, err := sdk.ParseSize(v.AsString())
	if err != nil || int64(got) < spec.Min || int64(got) > spec.Max {
		s.fault(s.where(name), fmt.Sprintf("%s is no size in its range: %q", name, v.AsString()), fmt.Sprintf("Write a whole number with a unit, from %q to %q.", sdk.Size(spec.Min), sdk.Size(spec.Max)))
		return 0
	}
	return int64(got)
}
