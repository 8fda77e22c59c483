package sdk

import (
	"errors"
	"fmt"
	"strings"
)

// CheckKey says why key is not one that the contract allows: 1 to MaxKey bytes of [A-Za-z0-9._/-] in segments of at most
// MaxSegment, none empty, "." or "..", so no leading or trailing "/". The answer is an *Error with Code Unsupported. The SDK asks it before a plugin sees a key.
func CheckKey(key string) error {
	if err := keyFault(key); err != nil {
		return &Error{Code: Unsupported, Err: err}
	}
	return nil
}

func keyFault(key string) error {
	if key == "" {
		return errors.New("the key is empty")
	}
	if err := keyBytesFault(key); err != nil {
		return err
	}
	for segment := range strings.SplitSeq(key, "/") {
		if len(segment) > MaxSegment {
			return fmt.Errorf("key %.20q… has a segment of %d bytes; at most %d are allowed", key, len(segment), MaxSegment)
		}
		if segment == "" || segment == "." || segment == ".." {
			return fmt.Errorf("key %q has the segment %q", key, segment)
		}
	}
	return nil
}

// CheckPrefix says why prefix cannot be the beginning of a key. The empty prefix, and one that ends inside a segment, are fine.
func CheckPrefix(prefix string) error {
	if err := keyBytesFault(prefix); err != nil {
		return &Error{Code: Unsupported, Err: err}
	}
	return nil
}

func keyBytesFault(key string) error {
	if len(key) > MaxKey {
		return fmt.Errorf("key %.20q… is %d bytes long; at most %d are allowed", key, len(key), MaxKey)
	}
	for i := range len(key) {
		if !keyByte(key[i]) {
			return fmt.Errorf("key %q holds %q; only letters, digits and . _ / - are allowed", key, key[i:i+1])
		}
	}
	return nil
}

func keyByte(b byte) bool {
	switch {
	case 'a' <= b && b <= 'z', 'A' <= b && b <= 'Z', '0' <= b && b <= '9':
		return true
	}
	return b == '.' || b == '_' || b == '/' || b == '-'
}
