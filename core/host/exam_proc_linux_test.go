package host

import (
	"net"
	"os"
	"slices"
	"strings"
	"testing"
)

func TestAConnectionThatAProcessHasMadeIsSeenAndOneThatItServesIsNot(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	before, err := connectionsOf(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	client, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	served, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer served.Close()
	after, err := connectionsOf(os.Getpid())
	if err != nil || len(after) != len(before)+1 {
		t.Errorf("connections %v, before %v, %v; want the one that was made, and not the one that was accepted", after, before, err)
	}
}

// The table is as Linux 6.12 prints it, with a listener, a connection to it, one that is being made, and one of another process.
func TestTheKernelsTableOfSocketsIsRead(t *testing.T) {
	const table = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1B9E 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 11 1 0000000000000000 100 0 0 10 0
   1: 0100007F:1B9E 0100007F:C350 01 00000000:00000000 00:00000000 00000000  1000        0 12 1 0000000000000000 20 4 30 10 -1
   2: 0100007F:C351 0100007F:2328 02 00000001:00000000 01:00000064 00000000  1000        0 13 2 0000000000000000 20 4 30 10 -1
   3: 0100007F:C352 0100007F:2328 01 00000000:00000000 00:00000000 00000000     0        0 99 1 0000000000000000 20 4 30 10 -1
   4: 0100007F:C353 0100007F:2328 06 00000000:00000000 03:00000F00 00000000     0        0 14 3 0000000000000000
`
	have := outgoing(parseSockets([]byte(table)), map[string]bool{"11": true, "12": true, "13": true, "14": true})
	if !slices.Equal(have, []string{"to 127.0.0.1:9000"}) {
		t.Errorf("%q", have)
	}
}

func TestPeakMemoryIsThatOfTheProcess(t *testing.T) {
	if peak := peakMemoryOf(os.Getpid()); peak < 1<<20 || peak > 64<<30 {
		t.Errorf("%d bytes", peak)
	}
	if peak := peakMemoryOf(1 << 30); peak != 0 {
		t.Errorf("%d bytes of a process that is not there", peak)
	}
	if _, err := connectionsOf(1 << 30); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("connections of a process that is not there: %v", err)
	}
}

func TestAnAddressOfTheKernelIsShownAsPeopleWriteIt(t *testing.T) {
	for kernel, people := range map[string]string{
		"0100007F:2328":                         "127.0.0.1:9000",
		"00000000000000000000000001000000:01BB": "[::1]:443",
		"":                                      "",
		"nonsense":                              "nonsense",
	} {
		if have := readAddress(kernel); have != people {
			t.Errorf("%q is shown as %q", kernel, have)
		}
	}
}
