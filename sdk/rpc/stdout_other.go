//go:build unix && !linux

package rpc

import "golang.org/x/sys/unix"

// dupOver makes descriptor to another name of from.
func dupOver(from, to int) error { return unix.Dup2(from, to) }
