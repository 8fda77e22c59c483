package sdk

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Schema describes the config block of a target of one plugin. The host checks the operator's file against it before the plugin
// sees any of it, so that a fault is shown with file and line. It refuses a schema with an attribute that breaks a rule at its fields.
type Schema struct {
	Attributes []Attribute `json:"attributes"`
}

// Attribute is one setting.
type Attribute struct {
	Name     string   `json:"name"` // [a-z][a-z0-9_]*, each once
	Type     Type     `json:"type"`
	Required bool     `json:"required,omitempty"`
	Default  string   `json:"default,omitempty"` // as the operator would write it, without quotes; "" = the zero value. None of a list, a map, a secret and what is required
	Enum     []string `json:"enum,omitempty"`    // of a string and nothing else: the values allowed, the default among them
	Doc      string   `json:"doc,omitempty"`
	Folder   bool     `json:"folder,omitempty"` // of a string and nothing else: it names the folder of this machine that holds the objects, and an object is at the folder and its key; the host keeps apart what must not overlap
}

// Type names the type of an attribute.
type Type string

// The types, and the Go type of the field each comes from.
const (
	TypeString   Type = "string"       // string
	TypeBool     Type = "bool"         // bool
	TypeInt      Type = "int"          // int64
	TypeDuration Type = "duration"     // time.Duration, written "10s"
	TypeSize     Type = "size"         // Size, written "16MiB"
	TypeSecret   Type = "secret"       // Secret
	TypeList     Type = "list(string)" // []string
	TypeMap      Type = "map(string)"  // map[string]string
)

// Attribute finds one by name.
func (s Schema) Attribute(name string) (Attribute, bool) {
	i := slices.IndexFunc(s.Attributes, func(a Attribute) bool { return a.Name == name })
	if i < 0 {
		return Attribute{}, false
	}
	return s.Attributes[i], true
}

// SchemaOf reflects the fields of C, a struct whose exported fields all carry a tag
//
//	cairn:"name", with ,required and ,folder after it as they apply   default:"10s"   enum:"a,b"   doc:"what it does"
//
// and are of the types listed at Type. A fault in the struct is the plugin author's: rpc.Serve refuses to start with it.
func SchemaOf[C any]() (Schema, error) {
	fields, err := configFields(reflect.TypeFor[C]())
	if err != nil {
		return Schema{}, err
	}
	schema := Schema{Attributes: []Attribute{}}
	for _, f := range fields {
		schema.Attributes = append(schema.Attributes, f.attr)
	}
	return schema, nil
}

// field is one attribute and where it lies in the struct.
type field struct {
	attr  Attribute
	index int
}

func configFields(t reflect.Type) ([]field, error) {
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("config type %v is not a struct", t)
	}
	var fields []field
	seen := map[string]bool{}
	for i := range t.NumField() {
		sf := t.Field(i)
		if !sf.IsExported() {
			continue
		}
		attr, err := attributeOf(sf)
		switch {
		case err != nil:
			return nil, fmt.Errorf("config field %v.%s: %w", t, sf.Name, err)
		case seen[attr.Name]:
			return nil, fmt.Errorf("config field %v.%s: the name %q is taken", t, sf.Name, attr.Name)
		}
		seen[attr.Name] = true
		fields = append(fields, field{attr: attr, index: i})
	}
	return fields, nil
}

func attributeOf(sf reflect.StructField) (Attribute, error) {
	name, flags, _ := strings.Cut(sf.Tag.Get("cairn"), ",")
	attr := Attribute{Name: name, Type: typeOf(sf.Type), Default: sf.Tag.Get("default"), Doc: sf.Tag.Get("doc")}
	if enum := sf.Tag.Get("enum"); enum != "" {
		attr.Enum = strings.Split(enum, ",")
	}
	switch {
	case !regexp.MustCompile(`^[a-z][a-z0-9_]*$`).MatchString(name):
		return attr, fmt.Errorf("tag cairn:%q: want a name of [a-z][a-z0-9_]*", name)
	case attr.Type == "":
		return attr, fmt.Errorf("type %v is not one of string, bool, int64, time.Duration, sdk.Size, sdk.Secret, []string, map[string]string", sf.Type)
	case attr.Enum != nil && attr.Type != TypeString:
		return attr, fmt.Errorf("enum is for strings, not for %s", attr.Type)
	}
	if err := attr.setFlags(flags); err != nil {
		return attr, err
	}
	return attr, defaultFault(attr, sf.Type)
}

// setFlags reads what follows the name in a tag.
func (a *Attribute) setFlags(flags string) error {
	for flag := range strings.SplitSeq(flags, ",") {
		switch {
		case flags == "":
		case flag == "required":
			a.Required = true
		case flag == "folder" && a.Type != TypeString:
			return fmt.Errorf("folder is for strings, not for %s", a.Type)
		case flag == "folder":
			a.Folder = true
		default:
			return fmt.Errorf("tag cairn: unknown flag %q", flag)
		}
	}
	return nil
}

// defaultFault proves that a default can be used: it must decode as the operator's own value would.
func defaultFault(attr Attribute, t reflect.Type) error {
	switch {
	case attr.Default == "":
		return nil
	case attr.Required:
		return fmt.Errorf("a required attribute has no default")
	case attr.Type == TypeList || attr.Type == TypeMap || attr.Type == TypeSecret:
		return fmt.Errorf("a %s has no default", attr.Type)
	}
	if err := setDefault(attr, reflect.New(t).Elem()); err != nil {
		return fmt.Errorf("default %q: %w", attr.Default, err)
	}
	return nil
}

func typeOf(t reflect.Type) Type {
	switch t {
	case reflect.TypeFor[string]():
		return TypeString
	case reflect.TypeFor[bool]():
		return TypeBool
	case reflect.TypeFor[int64]():
		return TypeInt
	case reflect.TypeFor[time.Duration]():
		return TypeDuration
	case reflect.TypeFor[Size]():
		return TypeSize
	case reflect.TypeFor[Secret]():
		return TypeSecret
	case reflect.TypeFor[[]string]():
		return TypeList
	case reflect.TypeFor[map[string]string]():
		return TypeMap
	}
	return ""
}
