package connect

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

// Explain says in words what to do about a call to a forge that failed.
func Explain(err error, kind Kind, address string) error {
	if err == nil {
		return nil
	}
	if hint := networkHint(err, address); hint != "" {
		return &task.Error{Code: task.Unavailable, Message: address + " cannot be reached", Hint: hint, Err: briefly(err)}
	}
	switch task.CodeOf(err) {
	case task.Unauthorized:
		return &task.Error{
			Code: task.Unauthorized, Message: fmt.Sprintf("%s does not accept the token: it is wrong, was revoked or has expired", address),
			Hint: fmt.Sprintf("make one at %s; it needs %s", kind.TokenPage(address), kind.Needs),
		}
	case task.Forbidden:
		return &task.Error{
			Code: task.Forbidden, Message: "the token is not allowed to do this", Err: briefly(err),
			Hint: fmt.Sprintf("it needs %s: %s", kind.Needs, kind.TokenPage(address)),
		}
	case task.Unavailable:
		if statusOf(err) == http.StatusProxyAuthRequired {
			return &task.Error{
				Code: task.Unavailable, Message: "the proxy wants to know who you are", Err: briefly(err),
				Hint: "put user and password into HTTPS_PROXY, as in http://user:password@proxy:3128",
			}
		}
	}
	return err
}

func statusOf(err error) int {
	if failure, is := errors.AsType[*forge.Error](err); is {
		return failure.Status
	}
	return 0
}

// briefly is the cause of an error, without the request.
func briefly(err error) error {
	if request, is := errors.AsType[*url.Error](err); is {
		return request.Err
	}
	return err
}

// networkHint is what to do about an address that cannot be reached, or nothing if that is
// not what has failed.
func networkHint(err error, address string) string {
	const proxy = "if this machine reaches the network through a proxy, set HTTPS_PROXY (and NO_PROXY for what is near)"
	if operation, is := errors.AsType[*net.OpError](err); is && operation.Op == "proxyconnect" {
		return "the proxy in HTTPS_PROXY or HTTP_PROXY does not answer: correct the variable, or put the host of the forge into NO_PROXY"
	}
	if hint := certificateHint(err); hint != "" {
		return hint
	}
	if unknown, is := errors.AsType[*net.DNSError](err); is {
		return fmt.Sprintf("the name %s is not known here: check the address; %s", unknown.Name, proxy)
	}
	switch {
	case strings.Contains(err.Error(), "Proxy Authentication Required"):
		return "the proxy wants to know who you are: put user and password into HTTPS_PROXY, as in http://user:password@proxy:3128"
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Sprintf("nothing listens there: check the address and the port, and that the forge runs (%s)", address)
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		return "there is no way to this address from here: check the network; " + proxy
	case errors.Is(err, context.DeadlineExceeded), isTimeout(err):
		return "it does not answer in time: check the address; " + proxy
	case errors.Is(err, syscall.ECONNRESET):
		return "the connection was cut: check the address and that it begins with the right one of http:// and https://"
	}
	return ""
}

func isTimeout(err error) bool {
	slow, is := errors.AsType[net.Error](err)
	return is && slow.Timeout()
}

// certificateHint is what to do about a certificate.
func certificateHint(err error) string {
	if _, is := errors.AsType[tls.RecordHeaderError](err); is || strings.Contains(err.Error(), "server gave HTTP response to HTTPS client") {
		return "it does not speak HTTPS there: write the address with http://, or with the port that speaks HTTPS"
	}
	if _, is := errors.AsType[x509.UnknownAuthorityError](err); is {
		return "its certificate is signed by an authority that this machine does not know: add that to the certificates of the system, " +
			"or put it into a file and set SSL_CERT_FILE and GIT_SSL_CAINFO to its path whenever Toryo is started"
	}
	if wrong, is := errors.AsType[x509.HostnameError](err); is {
		return fmt.Sprintf("its certificate is not for the name %s: use the name that it is for", wrong.Host)
	}
	if wrong, is := errors.AsType[x509.CertificateInvalidError](err); is && wrong.Reason == x509.Expired {
		return "its certificate has expired, or the clock of this machine is wrong"
	}
	if _, is := errors.AsType[*tls.CertificateVerificationError](err); is {
		return "its certificate is not valid: see what the administrator of the forge says"
	}
	return ""
}
