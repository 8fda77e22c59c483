package sqlcircuit

import "encoding/json"

// convertJSON hands a line on as it stands when it is one JSON value: nothing is decoded, so numbers keep their digits.
func convertJSON(line []byte) (text, refusal string) {
	if !json.Valid(line) {
		var value any
		err := json.Unmarshal(line, &value) // again, only to learn what is wrong
		return "", "it is not JSON: " + err.Error()
	}
	return string(line), ""
}

// appendJSONString appends s as a JSON string. s is valid UTF-8.
func appendJSONString(to []byte, s []byte) []byte {
	const hex = "0123456789abcdef"
	to = append(to, '"')
	for _, b := range s {
		switch {
		case b == '"' || b == '\\':
			to = append(to, '\\', b)
		case b == '\n':
			to = append(to, '\\', 'n')
		case b < 0x20:
			to = append(to, '\\', 'u', '0', '0', hex[b>>4], hex[b&15])
		default:
			to = append(to, b)
		}
	}
	return append(to, '"')
}
