package doctor

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"syscall"

	"github.com/toryo-dev/toryo/internal/textfmt"
)

// unreachable says why there was no answer over HTTP, and what to check. Setting is the
// configuration key of the address, and authority how a private certificate authority is made
// known.
func unreachable(err error, setting, authority string) (found, hint string) {
	if certificate, isOne := certificateProblem(err, setting, authority); isOne {
		return certificate.Found, certificate.Hint
	}
	proxy := "if it is reached by a proxy, HTTPS_PROXY, HTTP_PROXY and NO_PROXY"
	if operation, is := errors.AsType[*net.OpError](err); is && operation.Op == "proxyconnect" {
		return "the proxy does not answer", "correct HTTPS_PROXY or HTTP_PROXY, or put the host into NO_PROXY"
	}
	if name, is := errors.AsType[*net.DNSError](err); is {
		return fmt.Sprintf("the name %q cannot be resolved", name.Name), "check the host name in " + setting + ", the DNS of this machine and, " + proxy
	}
	var timeout net.Error
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused: nothing listens there", "check host and port in " + setting + ", whether it is running, and, " + proxy
	case errors.As(err, &timeout) && timeout.Timeout():
		return "no answer in time", "check host and port in " + setting + ", the firewalls in between and, " + proxy
	}
	return textfmt.Shorten(textfmt.OneLine(withoutAddress(err)), longestReason),
		"check " + setting + ", the DNS of this machine, the port and, " + proxy
}

// certificateProblem says what is wrong with the certificate of a server, if that is it.
func certificateProblem(err error, setting, authority string) (finding Finding, isOne bool) {
	_, isPlain := errors.AsType[tls.RecordHeaderError](err)
	if isPlain || strings.Contains(err.Error(), "server gave HTTP response to HTTPS client") {
		return Finding{Found: "it speaks HTTP there, not HTTPS", Hint: "begin " + setting + " with http://, or name the port for HTTPS"}, true
	}
	if _, is := errors.AsType[x509.UnknownAuthorityError](err); is {
		return Finding{Found: "its certificate is signed by an authority that this machine does not know", Hint: authority}, true
	}
	if host, is := errors.AsType[x509.HostnameError](err); is {
		return Finding{Found: "its certificate is not for " + host.Host, Hint: "use the name in " + setting + " for which the certificate is"}, true
	}
	if invalid, is := errors.AsType[x509.CertificateInvalidError](err); is {
		return Finding{Found: "its certificate cannot be used: " + invalid.Error(), Hint: "renew the certificate, and check the clock of this machine"}, true
	}
	return Finding{}, false
}

// withoutAddress is an error without the address, which is said beside it.
func withoutAddress(err error) string {
	if request, is := errors.AsType[*url.Error](err); is {
		return request.Err.Error()
	}
	return err.Error()
}
