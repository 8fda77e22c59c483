package pluginhost

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"testing"
	"time"
)

func newTestIdentity(t *testing.T) (identity, *x509.Certificate) {
	t.Helper()
	own, err := newIdentity()
	if err != nil {
		t.Fatal(err)
	}
	block, rest := pem.Decode(own.cert)
	if block == nil || len(rest) > 0 {
		t.Fatalf("want one PEM block, got %q", own.cert)
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return own, cert
}

func TestTheHostsCertificateIsOneThatTheStrictestTLSLibraryTakes(t *testing.T) {
	_, cert := newTestIdentity(t)
	key, ok := cert.PublicKey.(*ecdsa.PublicKey)
	if !ok || key.Curve != elliptic.P256() {
		t.Errorf("the key is a %T, want one on P-256: Rust's ring and older gRPC for Python know no larger curve", cert.PublicKey)
	}
	if cert.Version != 3 || cert.IsCA || cert.SerialNumber.Sign() <= 0 {
		t.Errorf("version %d, authority %v, serial %v; want 3, false (webpki takes no authority as a peer) and a positive one", cert.Version, cert.IsCA, cert.SerialNumber)
	}
	roots := x509.NewCertPool()
	roots.AddCert(cert)
	for _, at := range []time.Time{time.Date(1971, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(9000, 1, 1, 0, 0, 0, 0, time.UTC)} {
		if _, err := cert.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: at, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
			t.Errorf("as a client's, when the clock says %s: %v", at, err)
		}
	}
}

// leastCertificate is the least that a plugin in any language may show, as docs/protocol.md has it: a name, dates, a key, no other extension.
func leastCertificate(t *testing.T) (tls.Certificate, *x509.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		DNSNames: []string{"localhost"}, NotBefore: time.Unix(0, 0), NotAfter: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, cert
}

// meet connects host to a plugin that shows a certificate and takes that of the client it knows. The host trusts what the handshake line
// named; nil = nothing. Each end gives its error.
func meet(t *testing.T, host identity, known *x509.Certificate, shown tls.Certificate, named *x509.Certificate) (hostErr, pluginErr error) {
	t.Helper()
	clients := x509.NewCertPool()
	clients.AddCert(known)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{shown}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	served := make(chan error, 1)
	go func() {
		conn, err := listener.Accept()
		if err == nil {
			err = conn.(*tls.Conn).HandshakeContext(t.Context())
			conn.Close()
		}
		served <- err
	}()
	if named != nil {
		host.tls.RootCAs.AddCert(named) // as go-plugin does
	}
	conn, hostErr := tls.Dial("tcp", listener.Addr().String(), host.tls)
	if hostErr == nil {
		conn.Close()
	}
	return hostErr, <-served
}

func TestAPluginThatNamesNoCertificateIsNotTrusted(t *testing.T) {
	host, hostCert := newTestIdentity(t)
	shown, _ := leastCertificate(t)
	if hostErr, pluginErr := meet(t, host, hostCert, shown, nil); hostErr == nil || pluginErr == nil {
		t.Errorf("host: %v, plugin: %v; want both to refuse", hostErr, pluginErr)
	}
}

func TestThePluginOfOneHostServesNoOther(t *testing.T) {
	own, ownCert := newTestIdentity(t)
	other, _ := newTestIdentity(t)
	shown, named := leastCertificate(t)
	if _, pluginErr := meet(t, other, ownCert, shown, named); pluginErr == nil {
		t.Error("a host that did not start it is served")
	}
	if hostErr, pluginErr := meet(t, own, ownCert, shown, named); hostErr != nil || pluginErr != nil {
		t.Errorf("its own host: %v, plugin: %v", hostErr, pluginErr)
	}
}
