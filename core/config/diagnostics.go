package config

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
)

// Severity tells a fault that keeps the host from starting from a remark.
type Severity string

// The severities.
const (
	Error     Severity = "error"
	Warning   Severity = "warning"
	Unchecked Severity = "unchecked" // whether there is a fault could not be found out; the cause lies outside of the file
)

// Diagnostic is one fault of a configuration, with the place to look at and what to do.
type Diagnostic struct {
	Severity Severity `json:"severity"`
	File     string   `json:"file,omitempty"`
	Line     int      `json:"line,omitempty"`   // 1-based; 0 = the file as a whole
	Column   int      `json:"column,omitempty"` // 1-based, in characters
	Summary  string   `json:"summary"`
	Remedy   string   `json:"remedy,omitempty"`
	Snippet  string   `json:"snippet,omitempty"` // the source line, as written, but for values that may be secret
	width    int      // characters of the snippet that are at fault
}

// Diagnostics is everything that is wrong with a configuration.
type Diagnostics []Diagnostic

// HasErrors tells whether any of them keeps the host from starting.
func (d Diagnostics) HasErrors() bool {
	return slices.ContainsFunc(d, func(one Diagnostic) bool { return one.Severity != Warning })
}

// HasFaults tells whether any of them is to be mended in the file. Errors without faults may be gone at the next attempt.
func (d Diagnostics) HasFaults() bool {
	return slices.ContainsFunc(d, func(one Diagnostic) bool { return one.Severity == Error })
}

// Error makes Diagnostics an error: all of them, as Write shows them.
func (d Diagnostics) Error() string {
	var text bytes.Buffer
	if err := d.Write(&text); err != nil {
		return err.Error() // unreachable: a bytes.Buffer takes every write
	}
	return strings.TrimRight(text.String(), "\n")
}

// Write shows each fault as "error: file:line:column: what", the line itself with a marker below it, and the remedy.
func (d Diagnostics) Write(w io.Writer) error {
	for _, one := range d {
		if _, err := io.WriteString(w, one.text()); err != nil {
			return fmt.Errorf("write diagnostics: %w", err)
		}
	}
	return nil
}

func (d Diagnostic) text() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s: ", d.Severity)
	if d.File != "" {
		fmt.Fprintf(&text, "%s: ", d.position())
	}
	fmt.Fprintln(&text, d.Summary)
	if d.Snippet != "" {
		number := fmt.Sprintf("%6d", d.Line)
		fmt.Fprintf(&text, "%s | %s\n", number, d.Snippet)
		fmt.Fprintf(&text, "%s | %s%s\n", strings.Repeat(" ", len(number)), d.indent(), strings.Repeat("^", max(1, d.width)))
	}
	if d.Remedy != "" {
		fmt.Fprintf(&text, "       %s\n", d.Remedy)
	}
	return text.String()
}

func (d Diagnostic) position() string {
	name := shortPath(d.File)
	if d.Line == 0 {
		return name
	}
	return fmt.Sprintf("%s:%d:%d", name, d.Line, d.Column)
}

// indent repeats the tabs of the snippet, so that the marker stands under the fault whatever a tab's width is.
func (d Diagnostic) indent() string {
	var blank strings.Builder
	for i, r := range []rune(d.Snippet) {
		if i == d.Column-1 {
			break
		}
		if r != '\t' {
			r = ' '
		}
		blank.WriteRune(r)
	}
	return blank.String()
}

// shortPath is the path a person would type: relative to the working directory when that is shorter.
func shortPath(path string) string {
	wd, err := os.Getwd()
	if err != nil {
		return path
	}
	rel, err := filepath.Rel(wd, path)
	if err != nil || rel == "." || len(rel) >= len(path) {
		return path
	}
	return rel
}

// diagnostic places a fault in the source.
func diagnostic(severity Severity, source []byte, at hcl.Range, summary, remedy string) Diagnostic {
	one := Diagnostic{Severity: severity, File: at.Filename, Summary: summary, Remedy: remedy}
	if at.Start.Line == 0 {
		return one
	}
	one.Line, one.Column = at.Start.Line, at.Start.Column
	lines := bytes.Split(source, []byte("\n"))
	if at.Start.Line > len(lines) {
		return one
	}
	one.Snippet = strings.TrimRight(string(lines[at.Start.Line-1]), "\r")
	one.width = at.End.Column - at.Start.Column
	if at.End.Line != at.Start.Line {
		one.width = len([]rune(one.Snippet)) - at.Start.Column + 1
	}
	return one
}

// without is the fault with its source line up to the value at hidden, and with none at all where that holds the place of the fault.
func (d Diagnostic) without(source []byte, hidden hcl.Range) Diagnostic {
	switch {
	case d.Snippet == "" || d.Line < hidden.Start.Line || d.Line > hidden.End.Line:
	case d.Line > hidden.Start.Line || d.Column+d.width > hidden.Start.Column:
		d.Snippet = ""
	default:
		before := source[bytes.LastIndexByte(source[:hidden.Start.Byte], '\n')+1 : hidden.Start.Byte]
		if len(before) <= len(strings.TrimSuffix(d.Snippet, "…")) { // else an earlier value of the line is hidden already
			d.Snippet = string(before) + "…"
		}
	}
	return d
}

// named is the faults with their source lines up to the name that is at fault: what follows one that has no place there may be a secret.
func (d Diagnostics) named() Diagnostics {
	for i, one := range d {
		line := []rune(one.Snippet)
		if end := one.Column - 1 + one.width; one.Column > 0 && end < len(line) && strings.ContainsRune(string(line[end:]), '=') {
			d[i].Snippet = string(line[:end]) + " …"
		}
	}
	return d
}

// valueless is faults of the syntax with no more of their source lines than a block's header, or the name of what is set: in a text that does
// not parse nobody can tell what is a value, and so may be a secret.
func (d Diagnostics) valueless() Diagnostics {
	harmless := regexp.MustCompile(`^\s*(?:[\w-]+(?:\s+"[\w.-]*")*\s*\{|[{})\]]*)\s*$`)
	named := regexp.MustCompile(`^\s*[A-Za-z_][\w-]*(\s*[="{])`)
	for i, one := range d {
		if harmless.MatchString(one.Snippet) {
			continue
		}
		name := ""
		if at := named.FindStringSubmatchIndex(one.Snippet); at != nil {
			name = one.Snippet[:at[2]]
			d[i].Snippet = name + " …"
		} else {
			d[i].Snippet = ""
		}
		d[i].Remedy, d[i].width = unquoted(one.Remedy, one.Snippet[len(name):]), 1
	}
	return d
}

// unquoted is a remedy of HCL's without those words of the source that it quotes.
func unquoted(remedy, source string) string {
	return regexp.MustCompile(`["\[][\w-]{2,}["\]]`).ReplaceAllStringFunc(remedy, func(quoted string) string {
		if strings.Contains(source, quoted[1:len(quoted)-1]) {
			return dots
		}
		return quoted
	})
}

// fromHCL takes over what the HCL library found: a syntax error, an unknown attribute, a missing one.
func fromHCL(source []byte, found hcl.Diagnostics) Diagnostics {
	var all Diagnostics
	for _, d := range found {
		severity := Error
		if d.Severity == hcl.DiagWarning {
			severity = Warning
		}
		var at hcl.Range
		if d.Subject != nil {
			at = *d.Subject
		}
		all = append(all, diagnostic(severity, source, at, strings.ToLower(d.Summary[:1])+d.Summary[1:], d.Detail))
	}
	return all
}
