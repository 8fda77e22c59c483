package pluginhost

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/cairnsync/cairn/sdk"
)

const (
	// minSecret is the fewest bytes of a secret that is masked: shorter ones are found in every other word.
	minSecret = 4
	// minEncoded is the same for its encodings, whose few bytes would be found by chance.
	minEncoded = 8

	dots = "••••••"
)

// mask takes the secrets of one target out of whatever its plugin says to people: log lines, crash reports, errors, its description. It is a guard
// against accidents, such as a vendor's client that logs its request. A plugin that means to betray a secret can spell it in a way that
// nobody foresees, or send it away itself. A nil mask knows no secret.
type mask struct {
	forms    []string // longest first
	replacer *strings.Replacer
}

func newMask(secrets []string) *mask {
	var forms []string
	for _, secret := range secrets {
		forms = append(forms, formsOf(secret)...)
		if lines := strings.Split(secret, "\n"); len(lines) > 1 { // a key in PEM, which is printed line by line
			for _, line := range lines {
				forms = append(forms, formsOf(strings.TrimSpace(line))...)
			}
		}
	}
	if len(forms) == 0 {
		return nil
	}
	slices.SortFunc(forms, func(a, b string) int {
		return cmp.Or(len(b)-len(a), strings.Compare(a, b)) // the longest wins where several begin
	})
	forms = slices.Compact(forms)
	pairs := make([]string, 0, 2*len(forms))
	for _, form := range forms {
		pairs = append(pairs, form, dots)
	}
	return &mask{forms: forms, replacer: strings.NewReplacer(pairs...)}
}

// formsOf are the ways in which programs print a text: as it is, quoted for JSON or Go, escaped for a URL, in base64 and in hex.
func formsOf(secret string) []string {
	if len(secret) < minSecret {
		return nil
	}
	forms := append([]string{secret}, quotedForms(secret)...)
	forms = append(forms, percentForms(secret)...)
	if len(secret) < minEncoded {
		return forms
	}
	for _, alphabet := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for before := range 3 {
			forms = append(forms, base64Core(alphabet, secret, before))
		}
	}
	lower := hex.EncodeToString([]byte(secret))
	return append(forms, lower, strings.ToUpper(lower))
}

// quotedForms are a text between the quotes of Go and of JSON: as Go writes that, as most do, and in ASCII, to which PHP adds a backslash
// before each slash.
func quotedForms(secret string) []string {
	forms := []string{strconv.Quote(secret), strconv.QuoteToASCII(secret)}
	if quoted, err := json.Marshal(secret); err == nil {
		forms = append(forms, string(quoted))
	}
	var plain strings.Builder
	encoder := json.NewEncoder(&plain)
	encoder.SetEscapeHTML(false) // only Go does, and only by default
	if err := encoder.Encode(secret); err == nil {
		quoted := strings.TrimSpace(plain.String())
		lower, upper := asciiJSON(quoted, `\u%04x`), asciiJSON(quoted, `\u%04X`)
		forms = append(forms, quoted, lower, upper, strings.ReplaceAll(lower, "/", `\/`), strings.ReplaceAll(upper, "/", `\/`))
	}
	for i, form := range forms {
		forms[i] = form[1 : len(form)-1]
	}
	return forms
}

// asciiJSON writes what is not ASCII in a JSON text as its units of UTF-16, which are two beyond the first plane.
func asciiJSON(quoted, format string) string {
	var b strings.Builder
	for _, r := range quoted {
		if r < utf8.RuneSelf {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, format, unit)
		}
	}
	return b.String()
}

// percentForms are a text as it stands in a URL. What is left unescaped is a matter of taste: Go's for a query and for a path, that of
// encodeURIComponent, that of signatures (RFC 3986) and that of Python. Some write the hex digits small.
func percentForms(secret string) []string {
	forms := []string{url.QueryEscape(secret), url.PathEscape(secret)}
	for _, kept := range []string{"-_.!~*'()", "-_.~", "-_.~/"} {
		var b strings.Builder
		for _, c := range []byte(secret) {
			if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte(kept, c) >= 0 {
				b.WriteByte(c)
				continue
			}
			fmt.Fprintf(&b, "%%%02X", c)
		}
		forms = append(forms, b.String())
	}
	escape := regexp.MustCompile(`%[0-9A-F]{2}`)
	for _, form := range forms {
		forms = append(forms, escape.ReplaceAllStringFunc(form, strings.ToLower))
	}
	return forms
}

// base64Core is what the base64 of a longer text has in common whenever the secret stands in it after a number of bytes with this
// remainder by three, as in the user:password of an HTTP header.
func base64Core(alphabet *base64.Encoding, secret string, before int) string {
	text := alphabet.EncodeToString(append(make([]byte, before), secret...))
	begin := (8*before + 5) / 6
	end := 8 * (before + len(secret)) / 6
	return text[begin:end]
}

func (m *mask) text(s string) string {
	if m == nil {
		return s
	}
	return m.replacer.Replace(s)
}

// ellipsis ends a text that was cut to its bound.
const ellipsis = "…"

// bounded is text for what may have been cut to a bound.
func (m *mask) bounded(s string) string {
	if head, isCut := strings.CutSuffix(s, ellipsis); isCut {
		return m.cut(head) + ellipsis
	}
	return m.text(s)
}

// cut is text for what is only the beginning of a line: a secret that was cut in two is found by its first half.
func (m *mask) cut(s string) string {
	if m == nil {
		return s
	}
	s = m.text(s)
	longest := 0
	for _, form := range m.forms {
		for n := min(len(form)-1, len(s)); n >= minSecret && n > longest; n-- {
			if strings.HasSuffix(s, form[:n]) {
				longest = n
			}
		}
	}
	if longest == 0 {
		return s
	}
	return s[:len(s)-longest] + dots
}

// error gives err without the secrets in its text; codes and the errors in its chain stay what they are for errors.Is and errors.As.
func (m *mask) error(err error) error {
	if m == nil || err == nil {
		return err
	}
	switch e := err.(type) {
	case *sdk.Error:
		masked := *e
		for _, field := range []*string{&masked.Op, &masked.Key, &masked.Attribute, &masked.Provider, &masked.Hint} {
			*field = m.bounded(*field)
		}
		masked.Err = m.error(e.Err)
		return &masked
	case interface{ Unwrap() []error }:
		var all []error
		for _, one := range e.Unwrap() {
			all = append(all, m.error(one))
		}
		return errors.Join(all...)
	}
	text := m.bounded(err.Error())
	if text == err.Error() {
		return err
	}
	return &maskedError{text: text, err: m.error(errors.Unwrap(err))}
}

// maskedError stands for an error whose text held a secret; the chain goes on behind it.
type maskedError struct {
	text string
	err  error
}

func (e *maskedError) Error() string { return e.text }

func (e *maskedError) Unwrap() error { return e.err }

// description masks what a plugin says of itself.
func (m *mask) description(d sdk.Description) sdk.Description {
	if m == nil {
		return d
	}
	for _, field := range []*string{&d.Name, &d.Version, &d.SDK, &d.Doc} {
		*field = m.bounded(*field)
	}
	d.Features = m.all(d.Features)
	d.Schema.Attributes = slices.Clone(d.Schema.Attributes)
	for i := range d.Schema.Attributes {
		a := &d.Schema.Attributes[i]
		a.Name, a.Type, a.Default, a.Doc, a.Enum = m.bounded(a.Name), sdk.Type(m.bounded(string(a.Type))), m.bounded(a.Default), m.bounded(a.Doc), m.all(a.Enum)
	}
	return d
}

func (m *mask) all(texts []string) []string {
	masked := slices.Clone(texts)
	for i, text := range texts {
		masked[i] = m.bounded(text)
	}
	return masked
}
