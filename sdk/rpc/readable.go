package rpc

import (
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/cairnsync/cairn/sdk"
	"github.com/cairnsync/cairn/sdk/internal/pb"
)

// What the host takes of a plugin's words, whatever language that is written in: a text of an error or a description is one line of at most
// maxErrorText bytes, and there are only so many of them.
const (
	maxLabel       = 256       // bytes of a name or a version
	maxAttributes  = 1000      // of a schema: ten times what the largest vendor needs; and values of an enum
	maxDeleteText  = 64 << 10  // bytes in which the keys of one Delete may say why they failed
	maxDiagnostics = 100       // nobody reads more
	maxRetryAfter  = time.Hour // a store that wants more will say so again
)

// readable makes text fit to be read in a log, a status, a column and a terminal: at most limit bytes on one line, control characters and those that
// turn the direction of what follows as their escapes.
func readable(text string, limit int) string {
	if len(text) <= limit && utf8.ValidString(text) && strings.IndexFunc(text, needsEscape) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text { // an invalid byte comes as U+FFFD
		if b.Len() >= limit {
			b.WriteString("…")
			break
		}
		if needsEscape(r) {
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

func needsEscape(r rune) bool { return !unicode.IsGraphic(r) }

func describeFromWire(d *pb.Description) (sdk.Description, error) {
	if d.GetName() == "" {
		return sdk.Description{}, broken("describe", "", "does not say its name")
	}
	if n := len(d.GetSchema().GetAttributes()); n > maxAttributes {
		return sdk.Description{}, broken("describe", "", "has %d attributes; at most %d are taken", n, maxAttributes)
	}
	schema := sdk.Schema{Attributes: []sdk.Attribute{}}
	known := map[string]bool{}
	for _, a := range d.GetSchema().GetAttributes() {
		if fault := schemaFault(a); fault != nil {
			return sdk.Description{}, broken("describe", "", "has the attribute %.*q, %w", maxLabel, a.GetName(), fault)
		}
		if known[a.GetName()] { // which of them is to hold, the secret one or the other?
			return sdk.Description{}, broken("describe", "", "has the attribute %.*q twice", maxLabel, a.GetName())
		}
		known[a.GetName()] = true
		schema.Attributes = append(schema.Attributes, attributeFromWire(a))
	}
	return sdk.Description{
		Name: readable(d.GetName(), maxLabel), Version: readable(d.GetVersion(), maxLabel), SDK: readable(d.GetSdk(), maxLabel),
		Doc: readable(d.GetDoc(), maxErrorText), Schema: schema, Features: labels(d.GetFeatures()),
	}, nil
}

func attributeFromWire(a *pb.Attribute) sdk.Attribute {
	return sdk.Attribute{
		Name: readable(a.GetName(), maxLabel), Type: sdk.Type(readable(a.GetType(), maxLabel)), Required: a.GetRequired(),
		Default: readable(a.GetDefault(), maxErrorText), Enum: labels(a.GetEnum()), Doc: readable(a.GetDoc(), maxErrorText),
		Folder: a.GetFolder(),
	}
}

func labels(texts []string) []string {
	var all []string
	for _, text := range texts[:min(len(texts), maxAttributes)] {
		all = append(all, readable(text, maxLabel))
	}
	return all
}
