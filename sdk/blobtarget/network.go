package blobtarget

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"syscall"

	"github.com/cairnsync/cairn/sdk"
)

// network classifies what the transport says when no answer of the store came; anything else is Internal.
func network(err error) sdk.Error {
	switch {
	case untrusted(err):
		return sdk.Error{
			Code: sdk.Unavailable,
			Hint: "the store's certificate is not trusted here: name its CA in SSL_CERT_FILE in the env of the plugin block, or correct the endpoint",
		}
	case plainHTTP(err):
		return sdk.Error{Code: sdk.Unavailable, Hint: "the store answers plain http where https was asked for; is the scheme of the endpoint right?"}
	case unknownHost(err):
		return sdk.Error{Code: sdk.Unavailable, Hint: "the host name of the store does not resolve; check the endpoint, the region and the bucket's name"}
	case unreachable(err):
		return sdk.Error{Code: sdk.Unavailable}
	}
	return sdk.Error{Code: sdk.Internal}
}

func untrusted(err error) bool {
	var verification *tls.CertificateVerificationError
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	return errors.As(err, &verification) || errors.As(err, &authority) || errors.As(err, &host) || errors.As(err, &invalid)
}

func plainHTTP(err error) bool {
	var record tls.RecordHeaderError
	return errors.Is(err, http.ErrSchemeMismatch) || errors.As(err, &record)
}

func unknownHost(err error) bool {
	var dns *net.DNSError
	return errors.As(err, &dns) && dns.IsNotFound
}

// unreachable is everything between the first packet and the last byte of an answer.
func unreachable(err error) bool {
	var op net.Error
	var request *url.Error
	var alert tls.AlertError
	if errors.As(err, &op) || errors.As(err, &request) || errors.As(err, &alert) {
		return true
	}
	for _, one := range []error{io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, net.ErrClosed, os.ErrDeadlineExceeded, syscall.ECONNRESET, syscall.ECONNREFUSED, syscall.EPIPE} {
		if errors.Is(err, one) {
			return true
		}
	}
	return false
}
