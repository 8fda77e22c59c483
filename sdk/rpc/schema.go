package rpc

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/cairnsync/cairn/sdk"
	"github.com/cairnsync/cairn/sdk/internal/pb"
)

// schemaFault tells why an attribute cannot be set, or not be left out, in any configuration. sdk.SchemaOf says the same of a struct in Go. A type
// that this host does not know is one of a later contract: its values pass as text, with no rules.
func schemaFault(a *pb.Attribute) error {
	kind := sdk.Type(a.GetType())
	switch {
	case !regexp.MustCompile(`^[a-z][a-z0-9_]*$`).MatchString(a.GetName()):
		return errors.New("which no configuration can set: a name is [a-z][a-z0-9_]*")
	case len(a.GetEnum()) > 0 && kind != sdk.TypeString && isKnown(kind):
		return fmt.Errorf("with an enum: one is for a string, not for a %s", kind)
	case a.GetFolder() && kind != sdk.TypeString && isKnown(kind):
		return fmt.Errorf("which is a folder: one is a string, not a %s", kind)
	case a.GetDefault() == "":
		return nil
	case a.GetRequired():
		return errors.New("which is required and has a default")
	}
	return defaultFault(kind, a.GetDefault(), a.GetEnum())
}

func defaultFault(kind sdk.Type, text string, enum []string) (err error) {
	switch kind {
	case sdk.TypeBool:
		_, err = strconv.ParseBool(text)
	case sdk.TypeInt:
		_, err = strconv.ParseInt(text, 10, 64)
	case sdk.TypeDuration:
		_, err = time.ParseDuration(text)
	case sdk.TypeSize:
		_, err = sdk.ParseSize(text)
	case sdk.TypeList, sdk.TypeMap, sdk.TypeSecret:
		return fmt.Errorf("with a default: a %s has none", kind)
	default:
		if len(enum) > 0 && !slices.Contains(enum, text) {
			return fmt.Errorf("whose default %.*q is none of its enum", maxLabel, text)
		}
	}
	if err != nil {
		return fmt.Errorf("whose default %.*q is no %s", maxLabel, text, kind)
	}
	return nil
}

func isKnown(kind sdk.Type) bool {
	switch kind {
	case sdk.TypeBool, sdk.TypeInt, sdk.TypeDuration, sdk.TypeSize, sdk.TypeList, sdk.TypeMap, sdk.TypeSecret:
		return true
	}
	return false
}
