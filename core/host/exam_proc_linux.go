package host

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// The states of a socket in /proc/net/tcp, as the kernel numbers them.
const (
	tcpEstablished = "01"
	tcpSynSent     = "02"
	tcpListen      = "0A"
)

// socket is one line of /proc/net/tcp or tcp6: addresses as the kernel writes them, in hex.
type socket struct{ local, remote, state, inode string }

func (s socket) localPort() string { return s.local[strings.LastIndexByte(s.local, ':')+1:] }

// connectionsOf gives the TCP connections of a process, made or being made. Those that others have made to it are left out: a plugin
// may serve its host over TCP.
func connectionsOf(pid int) ([]string, error) {
	mine, err := socketsOf(pid)
	if err != nil {
		return nil, err
	}
	var all []socket
	for _, table := range []string{"tcp", "tcp6"} {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, table))
		if errors.Is(err, fs.ErrNotExist) {
			continue // a system without IPv6
		}
		if err != nil {
			return nil, err
		}
		all = append(all, parseSockets(text)...)
	}
	return outgoing(all, mine), nil
}

func outgoing(all []socket, mine map[string]bool) (open []string) {
	listening := map[string]bool{}
	for _, s := range all {
		if s.state == tcpListen && mine[s.inode] {
			listening[s.localPort()] = true
		}
	}
	for _, s := range all {
		if mine[s.inode] && slices.Contains([]string{tcpEstablished, tcpSynSent}, s.state) && !listening[s.localPort()] {
			open = append(open, "to "+readAddress(s.remote))
		}
	}
	return open
}

// readAddress makes 127.0.0.1:9000 of 0100007F:2328: the address is in words of four bytes, each in the order of this machine.
func readAddress(text string) string {
	address, port, _ := strings.Cut(text, ":")
	ip, err := hex.DecodeString(address)
	number, portErr := strconv.ParseUint(port, 16, 16)
	if err != nil || portErr != nil || len(ip)%4 != 0 {
		return text
	}
	for word := range slices.Chunk(ip, 4) {
		binary.NativeEndian.PutUint32(word, binary.BigEndian.Uint32(word))
	}
	return net.JoinHostPort(net.IP(ip).String(), strconv.FormatUint(number, 10))
}

func parseSockets(text []byte) (sockets []socket) {
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		// sl local_address rem_address st tx_queue:rx_queue tr:tm->when retrnsmt uid timeout inode
		if f := strings.Fields(lines.Text()); len(f) > 9 && strings.Contains(f[1], ":") {
			sockets = append(sockets, socket{local: f[1], remote: f[2], state: f[3], inode: f[9]})
		}
	}
	return sockets
}

// socketsOf are the inodes of the sockets that a process holds.
func socketsOf(pid int) (map[string]bool, error) {
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	inodes := map[string]bool{}
	for _, entry := range entries {
		link, err := os.Readlink(filepath.Join(dir, entry.Name()))
		if inode, ok := strings.CutPrefix(link, "socket:["); err == nil && ok {
			inodes[strings.TrimSuffix(inode, "]")] = true
		}
	}
	return inodes, nil
}

// peakMemoryOf reads VmHWM, the kernel's high-water mark of resident memory.
func peakMemoryOf(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0 // it has ended
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			if err != nil {
				return 0
			}
			return kib << 10
		}
	}
	return 0
}
