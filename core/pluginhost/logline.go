package pluginhost

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/hashicorp/go-hclog"
)

// logLine is one line a plugin wrote, as data. Whatever types the plugin put into a JSON line, here there are only strings, printable and
// valid UTF-8.
type logLine struct {
	level   hclog.Level
	message string
	pairs   []any // key, value, key, value…, all strings
}

// lineParser reads the lines of one stream and masks the secrets in them. It remembers only whether a Go panic has begun, because the lines that
// follow one carry no level.
type lineParser struct {
	mask      *mask
	panicking bool
}

// parse reads one line. cut = more of it came, and was dropped.
func (p *lineParser) parse(raw []byte, cut bool) logLine {
	if line, ok := p.parseJSON(raw); ok {
		return line
	}
	text := p.mask.text(string(raw))
	if cut {
		text = p.mask.cut(text)
	}
	text = printable(text)
	return logLine{level: p.levelOf(text), message: text}
}

func (p *lineParser) levelOf(text string) hclog.Level {
	if strings.HasPrefix(text, "panic: ") || strings.HasPrefix(text, "fatal error: ") {
		p.panicking = true
	}
	if p.panicking {
		return hclog.Error
	}
	if name, _, ok := strings.Cut(strings.TrimPrefix(text, "["), "]"); ok && text[0] == '[' {
		if level := hclog.LevelFromString(name); level != hclog.NoLevel {
			return level
		}
	}
	return hclog.Debug
}

// parseJSON reads what hclog writes in a plugin, and any other JSON object. The plugin's own time is dropped: the host stamps the line.
func (p *lineParser) parseJSON(raw []byte) (logLine, bool) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || raw[0] != '{' {
		return logLine{}, false
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return logLine{}, false
	}
	line := logLine{level: hclog.LevelFromString(p.textOf(fields["@level"])), message: p.textOf(fields["@message"])}
	if line.level == hclog.NoLevel || line.level == hclog.Off {
		line.level = hclog.Debug
	}
	for _, own := range []string{"@level", "@message", "@timestamp"} {
		delete(fields, own)
	}
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		line.pairs = append(line.pairs, fieldName(p.mask.text(key)), p.textOf(fields[key]))
	}
	return line, true
}

// maxField is how much of the name of a field is kept.
const maxField = 64

// fieldName makes the name of a plugin's field one word that is none of the host's own: by a name with spaces it could write fields, and by
// "target" or "@level" sign a line, in the name of others.
func fieldName(key string) string {
	name := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("_.-", r) {
			return r
		}
		return '_'
	}, strings.TrimLeft(key[:min(len(key), maxField)], "@"))
	switch name {
	case "", "target", "stream", "plugin", "pid":
		name += "_"
	}
	return name
}

// textOf answers a JSON string's content, and of any other value its JSON text.
func (p *lineParser) textOf(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) != nil {
		text = string(value)
	}
	return printable(p.mask.text(text))
}

// printable keeps a line one line and the terminal in order: invalid UTF-8 becomes U+FFFD, control characters and those that turn the
// direction of what follows become their escapes, which may make it longer: it is cut at maxLine once more.
func printable(text string) string {
	if utf8.ValidString(text) && strings.IndexFunc(text, needsEscape) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range strings.ToValidUTF8(text, "\uFFFD") {
		if b.Len() >= maxLine {
			b.WriteString("…")
			break
		}
		if needsEscape(r) {
			fmt.Fprint(&b, strings.Trim(fmt.Sprintf("%q", r), "'"))
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

func needsEscape(r rune) bool {
	return r != '\t' && !unicode.IsGraphic(r)
}

// String is the line as the crash report shows it.
func (l logLine) String() string {
	var b strings.Builder
	b.WriteString(l.message)
	for i := 0; i+1 < len(l.pairs); i += 2 {
		fmt.Fprintf(&b, " %s=%q", l.pairs[i], l.pairs[i+1])
	}
	return b.String()
}
