package rpc

import "golang.org/x/sys/unix"

// dupOver makes descriptor to another name of from. Not every Linux has dup2.
func dupOver(from, to int) error { return unix.Dup3(from, to, 0) }
