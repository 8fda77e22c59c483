package pluginhost

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/cairnsync/cairn/sdk/rpc"
)

// serveShut is a plugin that starts as any other does, and then allows its host no stream: every later call waits for one. No gRPC library lets
// a server say that, nor go-plugin a plugin reach its connections, so this one does without go-plugin.
func (r rogue) serveShut() {
	cert, err := serverCertificate()
	if err != nil {
		panic(err)
	}
	path := filepath.Join(os.Getenv("PLUGIN_UNIX_SOCKET_DIR"), "s")
	listener, err := net.Listen("unix", path)
	if err != nil {
		panic(err)
	}
	door := &door{TransportCredentials: credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12})}
	server := grpc.NewServer(grpc.Creds(door), grpc.UnknownServiceHandler(func(srv any, stream grpc.ServerStream) error {
		switch full, _ := grpc.MethodFromServerStream(stream); {
		case !strings.HasPrefix(full, "/cairn."):
			return status.Error(codes.Unimplemented, "none of go-plugin's own services")
		case strings.HasSuffix(full, "/Configure"):
			if err := door.shut(); err != nil {
				return err
			}
		}
		return r.handle(srv, stream)
	}))
	stdout := os.NewFile(rogueStdout, "stdout")
	fmt.Fprintf(stdout, "1|%d|unix|%s|grpc|%s\n", rpc.Handshake().ProtocolVersion, path, base64.RawStdEncoding.EncodeToString(cert.Certificate[0]))
	panic(server.Serve(listener))
}

func serverCertificate() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{DNSNames: []string{"localhost"}, NotAfter: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}

// door is the way of a server to its connection, beside gRPC.
type door struct {
	credentials.TransportCredentials

	mu   sync.Mutex
	conn net.Conn
}

// ServerHandshake implements credentials.TransportCredentials.
func (d *door) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := d.TransportCredentials.ServerHandshake(raw)
	if err != nil {
		return nil, nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.conn = conn
	return &doored{Conn: conn, door: d}, info, nil
}

// shut allows no further stream. gRPC writes whole frames, as long as they are as small as here, so that this one comes between two.
func (d *door) shut() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.conn == nil {
		return errors.New("there is no connection")
	}
	return http2.NewFramer(d.conn, nil).WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 0})
}

// doored is a connection with one writer at a time.
type doored struct {
	net.Conn
	door *door
}

func (c *doored) Write(p []byte) (int, error) {
	c.door.mu.Lock()
	defer c.door.mu.Unlock()
	return c.Conn.Write(p)
}
