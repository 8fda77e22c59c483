package sdk

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Decode fills cfg from the JSON object that the host sends: the names of the schema, durations and sizes as text ("10s", "16MiB").
// It is strict: an unknown name, a wrong type, a value outside an enum and a missing required attribute are faults, each an *Error
// with Code InvalidConfig and Attribute. All faults are joined; on any, cfg is left as it was. null is the same as leaving it out.
func Decode[C any](config []byte, cfg *C) error {
	fields, err := configFields(reflect.TypeFor[C]())
	if err != nil {
		return &Error{Code: InvalidConfig, Op: "decode config", Err: err}
	}
	raw, err := configObject(config)
	if err != nil {
		return &Error{Code: InvalidConfig, Op: "decode config", Err: err}
	}
	var decoded C
	faults := unknownNames(fields, raw)
	for _, f := range fields {
		if err := decodeField(f.attr, raw[f.attr.Name], reflect.ValueOf(&decoded).Elem().Field(f.index)); err != nil {
			faults = append(faults, &Error{Code: InvalidConfig, Attribute: f.attr.Name, Err: err})
		}
	}
	if len(faults) > 0 {
		return errors.Join(faults...)
	}
	*cfg = decoded
	return nil
}

// configObject reads the outer object; a name given twice is a fault, where encoding/json would let the last one win.
func configObject(config []byte) (map[string]json.RawMessage, error) {
	raw := map[string]json.RawMessage{}
	if len(bytes.TrimSpace(config)) == 0 {
		return raw, nil
	}
	dec := json.NewDecoder(bytes.NewReader(config))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return nil, errors.New("the configuration is not a JSON object")
	}
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return nil, err
		}
		name, _ := token.(string) // the decoder allows nothing else as a name
		if _, twice := raw[name]; twice {
			return nil, fmt.Errorf("the attribute %q is given twice", name)
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, err
		}
		raw[name] = value
	}
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	if dec.More() {
		return nil, errors.New("text follows the configuration's JSON object")
	}
	return raw, nil
}

func unknownNames(fields []field, raw map[string]json.RawMessage) []error {
	var faults []error
	for name := range raw {
		known := func(f field) bool { return f.attr.Name == name }
		if !slices.ContainsFunc(fields, known) {
			faults = append(faults, &Error{Code: InvalidConfig, Attribute: name, Err: errors.New("this plugin has no such attribute")})
		}
	}
	slices.SortFunc(faults, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return faults
}

func decodeField(attr Attribute, raw json.RawMessage, v reflect.Value) error {
	if raw == nil || string(raw) == "null" {
		if attr.Required {
			return errors.New("a value is required")
		}
		return setDefault(attr, v)
	}
	switch attr.Type {
	case TypeString, TypeSecret, TypeBool, TypeInt, TypeList, TypeMap:
		if err := json.Unmarshal(raw, v.Addr().Interface()); err != nil {
			return fmt.Errorf("want a %s", attr.Type) // the value stays out of the text: it may be a secret in the wrong place
		}
	default:
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			return fmt.Errorf("want a %s as text, such as %s", attr.Type, example(attr.Type))
		}
		return setText(attr, text, v)
	}
	if attr.Type == TypeString {
		return enumFault(attr, v.String())
	}
	return nil
}

func setDefault(attr Attribute, v reflect.Value) error {
	if attr.Default == "" {
		return nil
	}
	return setText(attr, attr.Default, v)
}

// setText sets v from the text that an operator would write.
func setText(attr Attribute, text string, v reflect.Value) error {
	switch attr.Type {
	case TypeString:
		v.SetString(text)
		return enumFault(attr, text)
	case TypeBool:
		b, err := strconv.ParseBool(text)
		v.SetBool(b)
		return err
	case TypeInt:
		n, err := strconv.ParseInt(text, 10, 64)
		v.SetInt(n)
		return err
	case TypeDuration:
		d, err := time.ParseDuration(text)
		if err != nil {
			return fmt.Errorf("duration %q: want a number with a unit, such as %s", text, example(TypeDuration))
		}
		v.SetInt(int64(d))
	case TypeSize:
		size, err := ParseSize(text)
		v.SetInt(int64(size))
		return err
	}
	return nil
}

func enumFault(attr Attribute, value string) error {
	if attr.Enum == nil || slices.Contains(attr.Enum, value) {
		return nil
	}
	return fmt.Errorf("%q is not one of %s", value, strings.Join(attr.Enum, ", "))
}

func example(t Type) string {
	if t == TypeSize {
		return `"16MiB"`
	}
	return `"10s"`
}
