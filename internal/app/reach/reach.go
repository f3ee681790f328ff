// Package reach says why another computer could not be reached over HTTP, and what to check:
// names, ports, proxies and certificates.
package reach

import (
	"context"
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

// Target is what was to be reached, in the words of whoever asks.
type Target struct {
	// Setting is where its address comes from, such as the key of the configuration.
	Setting string
	// Authority is how a private certificate authority is made known to us.
	Authority string
}

// Problem is why something could not be reached, and what to do.
type Problem struct {
	Found string
	Hint  string
}

// PasswordForProxy is the problem of a proxy that answers with status 407: where the request is
// not encrypted, that is an answer like any other.
var PasswordForProxy = Problem{"the proxy requires a user and a password", "put user and password into HTTPS_PROXY or HTTP_PROXY, as in http://user:password@proxy:3128"}

// longest is how many characters are shown of an error that we have no words for.
const longest = 300

const proxy = "if it is reached by a proxy, HTTPS_PROXY, HTTP_PROXY and NO_PROXY"

// Explain says why a request has failed. Known is false for an error that we have no words for:
// then the problem has those of the error itself.
func (t Target) Explain(err error) (problem Problem, known bool) {
	// The proxy comes first: what is wrong with its certificate is not wrong with that of the target.
	for _, explain := range []func(error) Problem{t.proxy, t.certificate, t.network} {
		if problem = explain(err); problem != (Problem{}) {
			return problem, true
		}
	}
	return Problem{textfmt.Shorten(textfmt.OneLine(textfmt.Plain(Brief(err).Error())), longest), "check " + t.Setting + ", the DNS of this machine, the port and, " + proxy}, false
}

func (t Target) network(err error) Problem {
	if name, is := errors.AsType[*net.DNSError](err); is {
		return Problem{fmt.Sprintf("the name %q cannot be resolved", name.Name), "check the host name in " + t.Setting + ", the DNS of this machine and, " + proxy}
	}
	slow, isSlow := errors.AsType[net.Error](err)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return Problem{"connection refused: nothing listens there", "check host and port in " + t.Setting + ", whether it is running, and, " + proxy}
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		return Problem{"there is no route to it from this machine", "check the host in " + t.Setting + ", the network and, " + proxy}
	case errors.Is(err, context.DeadlineExceeded), isSlow && slow.Timeout():
		return Problem{"no answer in time", "check host and port in " + t.Setting + ", the firewalls in between and, " + proxy}
	case errors.Is(err, syscall.ECONNRESET):
		return Problem{"the connection was closed at the other end", "check whether " + t.Setting + " has to begin with http:// or https://, the port and, " + proxy}
	}
	return Problem{}
}

// proxy says what is wrong with the proxy, if that is it.
func (t Target) proxy(err error) Problem {
	if strings.Contains(err.Error(), "Proxy Authentication Required") {
		return PasswordForProxy
	}
	operation, is := errors.AsType[*net.OpError](err)
	if !is || operation.Op != "proxyconnect" {
		return Problem{}
	}
	const its = "the proxy in HTTPS_PROXY or HTTP_PROXY "
	if speaksHTTP(err) {
		return Problem{its + "speaks HTTP, not HTTPS", "begin the variable with http://: what goes to an https address is encrypted on its way through the proxy too"}
	}
	if wrong := t.certificate(err); wrong != (Problem{}) {
		return Problem{its + "cannot be trusted: " + wrong.Found, "correct the variable, or " + t.Authority}
	}
	return Problem{its + "does not answer", "correct the variable, or put the host into NO_PROXY"}
}

// speaksHTTP reports whether the other end has answered a handshake of TLS with plain HTTP.
func speaksHTTP(err error) bool {
	_, is := errors.AsType[tls.RecordHeaderError](err)
	return is || strings.Contains(err.Error(), "server gave HTTP response to HTTPS client")
}

// certificate says what is wrong with the certificate of the other end, if that is it.
func (t Target) certificate(err error) Problem {
	if speaksHTTP(err) {
		return Problem{"it speaks HTTP there, not HTTPS", "begin " + t.Setting + " with http://, or name the port for HTTPS"}
	}
	if _, is := errors.AsType[x509.UnknownAuthorityError](err); is {
		return Problem{"its certificate is signed by an authority that this machine does not know", t.Authority}
	}
	if host, is := errors.AsType[x509.HostnameError](err); is {
		return Problem{"its certificate is not for " + host.Host, "use the name in " + t.Setting + " for which the certificate is"}
	}
	if invalid, is := errors.AsType[x509.CertificateInvalidError](err); is {
		return Problem{"its certificate cannot be used: " + invalid.Error(), "renew the certificate, and check the clock of this machine"}
	}
	if invalid, is := errors.AsType[*tls.CertificateVerificationError](err); is {
		return Problem{"its certificate cannot be used: " + invalid.Err.Error(), "ask whoever runs it for another certificate"}
	}
	return Problem{}
}

// Brief is an error without the request, whose address is said beside it.
func Brief(err error) error {
	if request, is := errors.AsType[*url.Error](err); is {
		return request.Err
	}
	return err
}
