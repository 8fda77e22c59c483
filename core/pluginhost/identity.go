package pluginhost

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"time"
)

// clientCertVar hands the host's certificate to a plugin, as go-plugin's automatic mutual TLS has it.
const clientCertVar = "PLUGIN_CLIENT_CERT"

// identity is what the host shows to one plugin process, and to no other: a fresh key, and a certificate that signs itself.
//
// go-plugin would make one on the curve P-521 and call it an authority. A plugin in another language need not take that: the TLS libraries
// of Rust (ring, webpki) know no P-521 and accept no authority as a peer, and older gRPC for Python and C++ knows P-256 only. So this is a
// plain P-256 certificate of a client, which every library takes.
type identity struct {
	tls  *tls.Config
	cert []byte // PEM, for clientCertVar
}

// newIdentity makes one. The certificate is valid whatever the clock says: it is trusted because the host handed it over, and for as long
// as the process lives.
func newIdentity() (identity, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return identity{}, fmt.Errorf("make a key for the connection to the plugin: %w", err)
	}
	template := &x509.Certificate{
		Subject:   pkix.Name{CommonName: "cairn"},
		DNSNames:  []string{"localhost"},
		NotBefore: time.Unix(0, 0), NotAfter: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC), // RFC 5280: no end
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return identity{}, fmt.Errorf("make a certificate for the connection to the plugin: %w", err)
	}
	return identity{
		// go-plugin adds the certificate of the handshake line as the only root. Without one in the line nothing is trusted.
		tls: &tls.Config{
			Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
			RootCAs:      x509.NewCertPool(),
			ServerName:   "localhost",
			MinVersion:   tls.VersionTLS12,
		},
		cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
	}, nil
}
