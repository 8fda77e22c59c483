package main

import (
	"fmt"
	"regexp"
	"strings"
)

// longKey is from how many bytes on a key is shortened for people; a SHA-256 in hexadecimal stays whole.
const longKey = 80

// forPeople shortens the text of a failed case. Of lines that differ in numbers and names only, as 64 Puts fail in the same way, the first is
// shown and the others are counted. --json has the whole text.
func forPeople(text string) []string {
	keys := regexp.MustCompile(fmt.Sprintf(`[A-Za-z0-9._/-]{%d,}`, longKey+1))
	like := regexp.MustCompile(`exam/[A-Za-z0-9._/-]+|[0-9]+`)
	var order []string
	first, more := map[string]string{}, map[string]int{}
	for line := range strings.SplitSeq(text, "\n") {
		kind := like.ReplaceAllString(line, "#")
		if _, seen := first[kind]; seen {
			more[kind]++
			continue
		}
		order, first[kind] = append(order, kind), keys.ReplaceAllStringFunc(line, shortened)
	}
	var lines []string
	for _, kind := range order {
		lines = append(lines, first[kind])
		if n := more[kind]; n > 0 {
			lines = append(lines, fmt.Sprintf("… and %d more like it", n))
		}
	}
	return lines
}

func shortened(key string) string {
	return fmt.Sprintf("%s…%s (%d bytes)", key[:40], key[len(key)-20:], len(key))
}
