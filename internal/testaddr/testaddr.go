// Package testaddr reserves loopback addresses for the servers that tests start.
package testaddr

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// The ports lie below those that the kernel gives to whoever asks for any port, or opens a connection (32768 and up on Linux, 49152 on darwin): a server's is
// free until it listens, and again while it is down, and must be its own all the same.
const (
	firstPort = 20_000
	ports     = 12_000
	attempts  = 100
)

// Reserve gives an address on which nothing listens. The port of the same number for datagrams is held until atEnd's function is called
// (t.Cleanup), so that no other test, of whatever process, is given the address meanwhile.
func Reserve(atEnd func(func())) (string, error) {
	var failed error
	for range attempts {
		address := fmt.Sprintf("127.0.0.1:%d", firstPort+rand.IntN(ports))
		if failed = try(address, atEnd); failed == nil {
			return address, nil
		}
	}
	return "", fmt.Errorf("find a free port: %w", failed)
}

func try(address string, atEnd func(func())) error {
	held, err := net.ListenPacket("udp", address)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return errors.Join(err, held.Close())
	}
	atEnd(func() { _ = held.Close() }) // nothing was sent through it
	return l.Close()
}
