package sdk_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/cairnsync/cairn/sdk"
)

type fullConfig struct {
	Bucket  string            `cairn:"bucket,required" doc:"where objects go"`
	Class   string            `cairn:"class" default:"hot" enum:"hot,cold"`
	Style   bool              `cairn:"path_style" default:"true"`
	Retries int64             `cairn:"retries" default:"3"`
	Timeout time.Duration     `cairn:"timeout" default:"10s"`
	Part    sdk.Size          `cairn:"part" default:"16MiB"`
	Key     sdk.Secret        `cairn:"key"`
	Hosts   []string          `cairn:"hosts"`
	Labels  map[string]string `cairn:"labels"`
	hidden  int               //nolint:unused // an unexported field is not configuration
}

func TestTheSchemaIsWhatTheStructSays(t *testing.T) {
	schema, err := sdk.SchemaOf[fullConfig]()
	if err != nil {
		t.Fatal(err)
	}
	want := []sdk.Attribute{
		{Name: "bucket", Type: sdk.TypeString, Required: true, Doc: "where objects go"},
		{Name: "class", Type: sdk.TypeString, Default: "hot", Enum: []string{"hot", "cold"}},
		{Name: "path_style", Type: sdk.TypeBool, Default: "true"},
		{Name: "retries", Type: sdk.TypeInt, Default: "3"},
		{Name: "timeout", Type: sdk.TypeDuration, Default: "10s"},
		{Name: "part", Type: sdk.TypeSize, Default: "16MiB"},
		{Name: "key", Type: sdk.TypeSecret},
		{Name: "hosts", Type: sdk.TypeList},
		{Name: "labels", Type: sdk.TypeMap},
	}
	if !reflect.DeepEqual(schema.Attributes, want) {
		t.Errorf("schema is\n%+v\nwant\n%+v", schema.Attributes, want)
	}
	if a, ok := schema.Attribute("part"); !ok || a.Type != sdk.TypeSize {
		t.Errorf("Attribute(part) = %+v, %v", a, ok)
	}
	if _, ok := schema.Attribute("hidden"); ok {
		t.Error("an unexported field is an attribute")
	}
}

func TestAFieldMaySayThatItNamesTheFolderOfTheObjects(t *testing.T) {
	schema, err := sdk.SchemaOf[struct {
		A string `cairn:"a,required,folder"`
		B string `cairn:"b,folder"`
		C string `cairn:"c,required"`
	}]()
	want := []sdk.Attribute{
		{Name: "a", Type: sdk.TypeString, Required: true, Folder: true}, {Name: "b", Type: sdk.TypeString, Folder: true}, {Name: "c", Type: sdk.TypeString, Required: true},
	}
	if err != nil || !reflect.DeepEqual(schema.Attributes, want) {
		t.Errorf("%+v, %v", schema.Attributes, err)
	}
}

func TestAStructThatCannotBeAConfigurationIsRefused(t *testing.T) {
	for want, schema := range map[string]func() (sdk.Schema, error){
		"not a struct": sdk.SchemaOf[int],
		"want a name": sdk.SchemaOf[struct {
			A string
		}],
		`"A-b"`: sdk.SchemaOf[struct {
			A string `cairn:"A-b"`
		}],
		"is taken": sdk.SchemaOf[struct {
			A string `cairn:"a"`
			B string `cairn:"a"`
		}],
		"unknown flag": sdk.SchemaOf[struct {
			A string `cairn:"a,optional"`
		}],
		"unknown flag \"required \"": sdk.SchemaOf[struct {
			A string `cairn:"a,folder,required "`
		}],
		"folder is for strings": sdk.SchemaOf[struct {
			A []string `cairn:"a,required,folder"`
		}],
		"is not one of": sdk.SchemaOf[struct {
			A int `cairn:"a"`
		}],
		"enum is for strings": sdk.SchemaOf[struct {
			A int64 `cairn:"a" enum:"1,2"`
		}],
		"has no default": sdk.SchemaOf[struct {
			A []string `cairn:"a" default:"x"`
		}],
		"required attribute has no default": sdk.SchemaOf[struct {
			A string `cairn:"a,required" default:"x"`
		}],
		`default "soon"`: sdk.SchemaOf[struct {
			A time.Duration `cairn:"a" default:"soon"`
		}],
		`"x" is not one of y, z`: sdk.SchemaOf[struct {
			A string `cairn:"a" default:"x" enum:"y,z"`
		}],
	} {
		if _, err := schema(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want it to say %s", err, want)
		}
	}
}

func TestDecodeFillsEveryTypeAndTheDefaults(t *testing.T) {
	var cfg fullConfig
	if err := sdk.Decode([]byte(`{"bucket":"b"}`), &cfg); err != nil {
		t.Fatal(err)
	}
	if want := (fullConfig{Bucket: "b", Class: "hot", Style: true, Retries: 3, Timeout: 10 * time.Second, Part: 16 << 20}); !reflect.DeepEqual(cfg, want) {
		t.Errorf("defaults: %+v", cfg)
	}
	err := sdk.Decode([]byte(`{"bucket":"b","class":"cold","path_style":false,"retries":0,"timeout":"1m","part":"1KiB","key":"s","hosts":["x","y"],
		"labels":{"a":"b"}}`), &cfg)
	if err != nil {
		t.Fatal(err)
	}
	want := fullConfig{
		Bucket: "b", Class: "cold", Timeout: time.Minute, Part: 1024, Key: "s", Hosts: []string{"x", "y"}, Labels: map[string]string{"a": "b"},
	}
	if !reflect.DeepEqual(cfg, want) {
		t.Errorf("values: %+v", cfg)
	}
}

func TestDecodeTellsEveryFaultWithItsAttribute(t *testing.T) {
	cfg := fullConfig{Bucket: "before"}
	err := sdk.Decode([]byte(`{"class":"warm","path_style":"yes","retries":1.5,"timeout":"soon","part":"16M","key":7,"hosts":"x","labels":["x"],"extra":1}`), &cfg)
	var got []string
	for _, one := range err.(interface{ Unwrap() []error }).Unwrap() {
		var e *sdk.Error
		if !errors.As(one, &e) || e.Code != sdk.InvalidConfig {
			t.Errorf("%v is not InvalidConfig", one)
			continue
		}
		got = append(got, e.Attribute)
	}
	want := []string{"extra", "bucket", "class", "path_style", "retries", "timeout", "part", "key", "hosts", "labels"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("faults of %q; want %q", got, want)
	}
	if cfg.Bucket != "before" {
		t.Error("a refused configuration has changed the struct")
	}
}

func TestDecodeTakesNothingButOneObject(t *testing.T) {
	for _, text := range []string{`[]`, `null`, `{`, `{"bucket":"a"} x`, `{"bucket":"a"}{}`, `{"bucket":"a","bucket":"b"}`, `{"bucket"}`, `"x"`, `{"bucket":}`} {
		var cfg fullConfig
		if err := sdk.Decode([]byte(text), &cfg); !errors.Is(err, sdk.InvalidConfig) {
			t.Errorf("%s: %v", text, err)
		}
	}
	var none struct{}
	for _, text := range []string{``, `{}`, " \n"} {
		if err := sdk.Decode([]byte(text), &none); err != nil {
			t.Errorf("%q for a plugin without configuration: %v", text, err)
		}
	}
}

func TestADecodeFaultNeverShowsTheValueOfASecret(t *testing.T) {
	var cfg struct {
		Key sdk.Secret `cairn:"key"`
	}
	err := sdk.Decode([]byte(`{"key":["hunter2"]}`), &cfg)
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("the fault reads %v", err)
	}
}

func FuzzDecodeNeverPanics(f *testing.F) {
	f.Add([]byte(`{"bucket":"b","part":"1KiB","hosts":["x",null],"labels":{"a":null}}`))
	f.Add([]byte(`{"bucket":"b","timeout":null}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var cfg fullConfig
		if err := sdk.Decode(text, &cfg); err != nil && !errors.Is(err, sdk.InvalidConfig) {
			t.Errorf("%q: %v is not InvalidConfig", text, err)
		}
	})
}
