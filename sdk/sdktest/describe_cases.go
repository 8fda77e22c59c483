package sdktest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"

	"github.com/cairnsync/cairn/sdk"
)

func describeCases() []Case {
	return []Case{
		{"Describe works before Configure and after it, and answers the same each time", Process, describeSame},
		{"a description has a name, a semantic version and a schema that the host can use", Process, describeWhole},
		{"Validate works before Configure, takes the configuration that works, and touches nothing", Process, validateOffline},
		{"an attribute that the schema does not know is InvalidConfig and named", Process, refuseUnknown},
		{"a value of another type than the schema's is InvalidConfig and named, and is not repeated", Process, refuseType},
		{"a required attribute that is missing is InvalidConfig and named", Process, refuseMissing},
		{"a value outside an enum is InvalidConfig and named", Process, refuseEnum},
	}
}

func describeSame(ctx context.Context, e *Env) error {
	var first sdk.Description
	same := func(i Instance, when string) error {
		ctx, cancel := context.WithTimeout(ctx, answersSoon)
		defer cancel()
		have, err := i.Describe(ctx)
		switch {
		case err != nil:
			return fmt.Errorf("describe %s: %w", when, err)
		case first.Name == "":
			first = have
		case !reflect.DeepEqual(have, first):
			return fmt.Errorf("describe %s answers %+v; the first time it was %+v", when, have, first)
		}
		return nil
	}
	err := e.withInstance(ctx, 0, func(i Instance) error {
		if err := errors.Join(same(i, "before Configure"), same(i, "again")); err != nil {
			return err
		}
		if err := i.Configure(ctx, e.Process.Config()); err != nil {
			return fmt.Errorf("configure: %w", err)
		}
		return same(i, "after Configure")
	})
	if err != nil {
		return err
	}
	return e.withInstance(ctx, 0, func(i Instance) error { return same(i, "in another process") })
}

func describeWhole(ctx context.Context, e *Env) error {
	return e.withInstance(ctx, 0, func(i Instance) error {
		about, err := i.Describe(ctx)
		if err != nil {
			return err
		}
		var faults []error
		if !regexp.MustCompile(`^[a-z][a-z0-9_-]*$`).MatchString(about.Name) {
			faults = append(faults, fmt.Errorf("the name %q is none that plugin = \"NAME\" can have; want [a-z][a-z0-9_-]*", about.Name))
		}
		if !regexp.MustCompile(`^\d+\.\d+\.\d+([-+][0-9A-Za-z.+-]+)?$`).MatchString(about.Version) {
			faults = append(faults, fmt.Errorf("the version %q is not a semantic one, such as 1.2.3", about.Version))
		}
		if about.SDK == "" {
			faults = append(faults, errors.New("it does not say which SDK, or language, it is written with"))
		}
		return errors.Join(append(faults, schemaFaults(about.Schema)...)...)
	})
}

func schemaFaults(schema sdk.Schema) (faults []error) {
	types := []sdk.Type{sdk.TypeString, sdk.TypeBool, sdk.TypeInt, sdk.TypeDuration, sdk.TypeSize, sdk.TypeSecret, sdk.TypeList, sdk.TypeMap}
	seen := map[string]bool{}
	for _, a := range schema.Attributes {
		switch {
		case !regexp.MustCompile(`^[a-z][a-z0-9_]*$`).MatchString(a.Name):
			faults = append(faults, fmt.Errorf("attribute %q: want a name of [a-z][a-z0-9_]*", a.Name))
		case seen[a.Name]:
			faults = append(faults, fmt.Errorf("attribute %q is there twice", a.Name))
		case !slices.Contains(types, a.Type):
			faults = append(faults, fmt.Errorf("attribute %q has the type %q, which no host knows", a.Name, a.Type))
		case a.Required && a.Default != "":
			faults = append(faults, fmt.Errorf("attribute %q is required and has a default", a.Name))
		case a.Doc == "":
			faults = append(faults, fmt.Errorf("attribute %q does not say what it is for", a.Name))
		}
		seen[a.Name] = true
	}
	return faults
}

func validateOffline(ctx context.Context, e *Env) error {
	if err := e.put(ctx, "there", []byte("x")); err != nil {
		return err
	}
	return e.withInstance(ctx, 0, func(i Instance) error {
		for range 3 {
			soon, cancel := context.WithTimeout(ctx, answersSoon)
			err := i.Validate(soon, e.Process.Config())
			cancel()
			if err != nil {
				return fmt.Errorf("validate the configuration of this target: %w", err)
			}
		}
		if err := noConnections(i, "Validate"); err != nil {
			return err
		}
		if err := i.Configure(ctx, e.Process.Config()); err != nil {
			return fmt.Errorf("configure after Validate: %w", err)
		}
		return e.listed(ctx, "", "", "there")
	})
}

// refused has both Validate and Configure look at a configuration that cannot be, and then takes the one that can.
func (e *Env) refused(ctx context.Context, i Instance, config []byte, attribute, what string) error {
	if err := wantAttribute(i.Validate(ctx, config), attribute, "Validate of "+what); err != nil {
		return err
	}
	return wantAttribute(i.Configure(ctx, config), attribute, "Configure with "+what)
}

// refusals tries a wrong value for each attribute for which wrong gives one, and then proves that the process is as good as new.
func (e *Env) refusals(ctx context.Context, wrong func(a sdk.Attribute) (value any, what string)) error {
	settings, err := e.settings()
	if err != nil {
		return err
	}
	return e.withInstance(ctx, 0, func(i Instance) error {
		about, err := i.Describe(ctx)
		if err != nil {
			return err
		}
		for _, a := range about.Schema.Attributes {
			value, what := wrong(a)
			if what == "" {
				continue
			}
			config, err := changed(settings, a.Name, value)
			if err != nil {
				return err
			}
			if err := e.refused(ctx, i, config, a.Name, what); err != nil {
				return err
			}
		}
		if err := i.Configure(ctx, e.Process.Config()); err != nil {
			return fmt.Errorf("configure after refusals: %w", err)
		}
		return e.works(ctx, i, "after-refusals")
	})
}

func refuseUnknown(ctx context.Context, e *Env) error {
	settings, err := e.settings()
	if err != nil {
		return err
	}
	return e.withInstance(ctx, 0, func(i Instance) error {
		const unknown = "attribute_of_the_exam"
		config, err := changed(settings, unknown, "x")
		if err != nil {
			return err
		}
		if err := e.refused(ctx, i, config, unknown, "an unknown attribute"); err != nil {
			return err
		}
		if err := i.Configure(ctx, e.Process.Config()); err != nil {
			return fmt.Errorf("configure after a refusal: %w", err)
		}
		return e.works(ctx, i, "after-refusal")
	})
}

// misplaced stands where a secret could have been written by mistake.
const misplaced = "cairn-exam-misplaced-value"

func refuseType(ctx context.Context, e *Env) error {
	if err := e.repeatsNothing(ctx); err != nil {
		return err
	}
	return e.refusals(ctx, func(a sdk.Attribute) (any, string) {
		what := fmt.Sprintf("another type for %s, a %s", a.Name, a.Type)
		switch a.Type {
		case sdk.TypeList, sdk.TypeMap:
			return misplaced, what
		case sdk.TypeBool, sdk.TypeInt:
			return map[string]string{"x": misplaced}, what
		}
		return []string{misplaced}, what
	})
}

// repeatsNothing looks for the wrong value in the answer: it may be a secret in the wrong place.
func (e *Env) repeatsNothing(ctx context.Context) error {
	settings, err := e.settings()
	if err != nil {
		return err
	}
	return e.withInstance(ctx, 0, func(i Instance) error {
		about, err := i.Describe(ctx)
		if err != nil {
			return err
		}
		for _, a := range about.Schema.Attributes {
			if a.Type != sdk.TypeSecret {
				continue
			}
			config, err := changed(settings, a.Name, []string{misplaced})
			if err != nil {
				return err
			}
			if err := i.Validate(ctx, config); err != nil && mentions(err, misplaced) {
				return fmt.Errorf("the fault of the secret attribute %q repeats its value", a.Name)
			}
		}
		return nil
	})
}

func refuseMissing(ctx context.Context, e *Env) error {
	return e.refusals(ctx, func(a sdk.Attribute) (any, string) {
		if !a.Required {
			return nil, ""
		}
		return nil, "no value for " + a.Name
	})
}

func refuseEnum(ctx context.Context, e *Env) error {
	return e.refusals(ctx, func(a sdk.Attribute) (any, string) {
		if len(a.Enum) == 0 {
			return nil, ""
		}
		return "none-of-these", "a value outside the enum of " + a.Name
	})
}

// valuesOf are the secrets of a configuration that are long enough to be told from chance.
func valuesOf(settings map[string]any, schema sdk.Schema) (secrets []string) {
	for _, a := range schema.Attributes {
		if text, ok := settings[a.Name].(string); ok && a.Type == sdk.TypeSecret && len(text) >= 8 {
			secrets = append(secrets, text)
			if quoted, err := json.Marshal(text); err == nil {
				secrets = append(secrets, string(quoted[1:len(quoted)-1]))
			}
		}
	}
	return secrets
}
