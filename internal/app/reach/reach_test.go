package reach_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/toryo-dev/toryo/internal/app/reach"
)

func TestExplain(t *testing.T) {
	t.Parallel()
	at := reach.Target{Setting: "gitea.url", Authority: "name it in ca_file"}
	dial := func(code error) error {
		return &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", code)}
	}
	for name, c := range map[string]struct {
		err         error
		found, hint string
	}{
		"no such host":        {&net.DNSError{Err: "no such host", Name: "forge.invalid", IsNotFound: true}, `"forge.invalid" cannot be resolved`, "gitea.url"},
		"a slow DNS":          {&net.DNSError{Err: "timeout", Name: "forge.invalid", IsTimeout: true}, "cannot be resolved", "DNS"},
		"refused":             {dial(syscall.ECONNREFUSED), "nothing listens", "port in gitea.url"},
		"no route":            {dial(syscall.EHOSTUNREACH), "no route", "network"},
		"no network":          {dial(syscall.ENETUNREACH), "no route", "NO_PROXY"},
		"cut":                 {dial(syscall.ECONNRESET), "closed at the other end", "https://"},
		"too slow":            {context.DeadlineExceeded, "no answer in time", "firewalls"},
		"a dead proxy":        {&net.OpError{Op: "proxyconnect", Net: "tcp", Err: dial(syscall.ECONNREFUSED)}, "the proxy in HTTPS_PROXY or HTTP_PROXY does not answer", "NO_PROXY"},
		"a proxy's password":  {errors.New("Proxy Authentication Required"), "requires a user and a password", "HTTPS_PROXY"},
		"an expired one":      {x509.CertificateInvalidError{Cert: new(x509.Certificate), Reason: x509.Expired}, "expired", "clock"},
		"another certificate": {&tls.CertificateVerificationError{Err: errors.New("odd")}, "cannot be used: odd", "another certificate"},
		"another name":        {x509.HostnameError{Certificate: new(x509.Certificate), Host: "forge.example"}, "not for forge.example", "gitea.url"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, known := at.Explain(fmt.Errorf("read the account: %w", &url.Error{Op: "Get", URL: "https://forge.example/api", Err: c.err}))
			if !known || !strings.Contains(got.Found, c.found) || !strings.Contains(got.Hint, c.hint) {
				t.Errorf("explained as %+v, %t", got, known)
			}
		})
	}
}

// Real servers fail in the words that are looked for.
func TestExplainRealFailures(t *testing.T) {
	t.Parallel()
	at := reach.Target{Setting: "agent.server", Authority: "name it in ca_file"}
	private := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(private.Close)
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	wanting := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusProxyAuthRequired) }))
	t.Cleanup(wanting.Close)
	for name, c := range map[string]struct{ url, proxy, found, hint string }{
		"a private authority": {private.URL, "", "authority that this machine does not know", "ca_file"},
		"HTTP for HTTPS":      {strings.Replace(plain.URL, "http:", "https:", 1), "", "speaks HTTP", "begin agent.server with http://"},
		"a proxy's password":  {"https://forge.invalid", wanting.URL, "requires a user", "HTTPS_PROXY"},
		// What is wrong is the address of the proxy: with http:// in that of the server, tokens
		// would go over the network as they are.
		"HTTP for HTTPS at a proxy":      {"https://forge.invalid", strings.Replace(plain.URL, "http:", "https:", 1), "the proxy in HTTPS_PROXY or HTTP_PROXY speaks HTTP", "begin the variable with http://"},
		"a private authority of a proxy": {"https://forge.invalid", private.URL, "the proxy in HTTPS_PROXY or HTTP_PROXY cannot be trusted", "correct the variable"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			transport := new(http.Transport)
			t.Cleanup(transport.CloseIdleConnections)
			if c.proxy != "" {
				to, err := url.Parse(c.proxy)
				if err != nil {
					t.Fatal(err)
				}
				transport.Proxy = http.ProxyURL(to)
			}
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.url, nil)
			if err != nil {
				t.Fatal(err)
			}
			answer, err := (&http.Client{Transport: transport}).Do(request)
			if err == nil {
				_ = answer.Body.Close()
				t.Fatalf("it answers with %s", answer.Status)
			}
			got, known := at.Explain(err)
			if !known || !strings.Contains(got.Found, c.found) || !strings.Contains(got.Hint, c.hint) || c.proxy != "" && strings.Contains(got.Hint, "agent.server") {
				t.Errorf("%v is explained as %+v, %t", err, got, known)
			}
		})
	}
}

// What we have no words for is said as it is, without the address, and on one line.
func TestExplainOtherFailures(t *testing.T) {
	t.Parallel()
	err := &url.Error{Op: "Get", URL: "https://forge.example/secret", Err: errors.New("odd\n\x1b[31mthings " + strings.Repeat("x", 1000))}
	got, known := reach.Target{Setting: "gitea.url"}.Explain(err)
	if known || !strings.HasPrefix(got.Found, "odd") || strings.ContainsAny(got.Found, "\n\x1b") || strings.Contains(got.Found, "secret") || len(got.Found) > 400 || !strings.Contains(got.Hint, "gitea.url") {
		t.Errorf("explained as %+v, %t", got, known)
	}
}
