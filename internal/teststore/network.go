package teststore

import (
	"bytes"
	"encoding/json"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"testing"
)

// Network is the way to a server, whose faults a test commands: toxiproxy 2.12.0. Its methods are for one goroutine.
type Network struct {
	Endpoint string // of the server, as it is reached over this network

	api string
}

// Toxic is a fault of a network, in toxiproxy's words (https://github.com/Shopify/toxiproxy#toxics).
type Toxic struct {
	Type       string         `json:"type"`
	Stream     string         `json:"stream"`   // "upstream", to the server, or "downstream"
	Toxicity   float64        `json:"toxicity"` // the part of all connections that it befalls
	Attributes map[string]any `json:"attributes"`
}

const way = "way" // the name of a network's one proxy

// NewNetwork starts a toxiproxy in front of a server's endpoint. It ends with the test.
func NewNetwork(t testing.TB, endpoint string) *Network {
	t.Helper()
	dir := install(t, goProgram("toxiproxy", "v2.12.0", "github.com/Shopify/toxiproxy/v2/cmd/server"))
	server := start(t, program{
		name: "toxiproxy",
		command: func(t testing.TB, address string) (env, args []string) {
			host, port, err := net.SplitHostPort(address)
			if err != nil {
				t.Fatal(err)
			}
			return nil, []string{filepath.Join(dir, "server"), "-host", host, "-port", port}
		},
	})
	to, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	n := &Network{api: server.Endpoint}
	var made struct{ Listen string }
	n.ask(t, http.MethodPost, "/proxies", map[string]any{"name": way, "listen": "127.0.0.1:0", "upstream": to.Host, "enabled": true}, &made)
	n.Endpoint = "http://" + made.Listen
	return n
}

// Plague adds a fault to those that are there.
func (n *Network) Plague(t testing.TB, toxic Toxic) {
	t.Helper()
	n.ask(t, http.MethodPost, "/proxies/"+way+"/toxics", toxic, nil)
}

// Down breaks every connection and refuses new ones, until Heal.
func (n *Network) Down(t testing.TB) {
	t.Helper()
	n.ask(t, http.MethodPost, "/proxies/"+way, map[string]any{"enabled": false}, nil)
}

// Heal takes all faults away.
func (n *Network) Heal(t testing.TB) {
	t.Helper()
	n.ask(t, http.MethodPost, "/reset", nil, nil)
}

func (n *Network) ask(t testing.TB, method, path string, body, into any) {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, n.api+path, bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := answered(req, into); err != nil {
		t.Fatalf("toxiproxy: %v", err)
	}
}
