package main

import (
	"fmt"
	"math/rand/v2"
	"net"
)

// The ports of hosts lie below those that the kernel gives to whoever asks for any port, or opens a connection: a host's is free while the host is
// down, and must still be its own when it is started again.
const (
	firstPort = 20_000
	ports     = 12_000
)

// freeAddress reserves an address for a host, and what may run in its place later. The port of the same number for datagrams is held until atEnd's functions
// are called, so that no other test, of whatever process, takes the address meanwhile.
func freeAddress(atEnd func(func())) (string, error) {
	var failed error
	for range 100 {
		address := fmt.Sprintf("127.0.0.1:%d", firstPort+rand.IntN(ports))
		held, err := net.ListenPacket("udp", address)
		if err != nil {
			failed = err
			continue
		}
		l, err := net.Listen("tcp", address)
		if err != nil {
			failed = err
			held.Close()
			continue
		}
		atEnd(func() { held.Close() })
		return address, l.Close()
	}
	return "", fmt.Errorf("find a free port: %w", failed)
}
