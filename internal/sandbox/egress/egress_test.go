package egress_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/sandbox/egress"
)

func TestListNamesHostsAndPorts(t *testing.T) {
	t.Parallel()
	list, err := egress.NewList("one.example", "*.two.example", "three.example:8080", "[::1]:9")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		host string
		port int
		want bool
	}{
		{"one.example", 443, true}, {"ONE.example.", 80, true}, {"one.example", 22, false}, {"x.one.example", 443, false},
		{"evilone.example", 443, false}, {"one.example.evil", 443, false}, {"a.two.example", 443, true}, {"a.b.two.example", 443, true},
		{"two.example", 443, false}, {"eviltwo.example", 443, false}, {"three.example", 8080, true}, {"three.example", 443, false},
		{"::1", 9, true}, {"", 443, false}, {".", 443, false},
	} {
		if got := list.Trust(test.host, test.port) != egress.Unlisted; got != test.want {
			t.Errorf("%s:%d is %v, want %v", test.host, test.port, got, test.want)
		}
	}
	for _, bad := range []string{"", "*", "*.", "a*b.example", "http://x/", "x:0", "x:99999", "x:y", "*x.example", "a b"} {
		if _, err := egress.NewList(bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
	if _, err := egress.Registries("mine.example"); err != nil {
		t.Errorf("the list that comes with the program: %v", err)
	}
}

// through is a client that goes through the proxy, one connection each time.
func through(proxy *egress.Proxy) *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true, Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: "proxy"}),
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			inside, outside := net.Pipe()
			proxy.Serve(outside)
			return inside, nil
		}}}
}

func newProxy(t *testing.T, policy sandbox.Policy, hosts ...string) *egress.Proxy {
	t.Helper()
	list, err := egress.NewList(hosts...)
	if err != nil {
		t.Fatal(err)
	}
	proxy := egress.New(list, policy, slog.New(slog.DiscardHandler))
	t.Cleanup(func() { _ = proxy.Close() })
	return proxy
}

func TestPoliciesDecide(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Proxy-Connection") != "" {
			t.Error("a header for the proxy was passed on")
		}
		_, _ = fmt.Fprintf(w, "%s %s", r.Method, r.URL.Path)
	}))
	t.Cleanup(server.Close)
	named := strings.TrimPrefix(server.URL, "http://")
	for _, test := range []struct {
		policy sandbox.Policy
		hosts  []string
		want   int
	}{
		{sandbox.NoNetwork, []string{named}, 403}, {sandbox.Registries, []string{named}, 200}, {sandbox.Registries, nil, 403},
		{sandbox.OpenWorld, nil, 403 /* the address is the host's own */}, {sandbox.OpenWorld, []string{named}, 200}, {"nonsense", []string{named}, 403},
	} {
		answer, err := through(newProxy(t, test.policy, test.hosts...)).Get(server.URL + "/x")
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if answer.StatusCode != test.want || (test.want == 200 && string(body) != "GET /x") {
			t.Errorf("%s with %v: %d %q, want %d", test.policy, test.hosts, answer.StatusCode, body, test.want)
		}
	}
}

func TestNamesThatLeadInsideAreRefused(t *testing.T) {
	t.Parallel()
	proxy := newProxy(t, sandbox.OpenWorld)
	for _, address := range []string{"localhost", "127.0.0.1", "[::1]", "10.1.2.3", "192.168.0.1", "172.16.0.1", "169.254.169.254", "[fe80::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "100.64.0.1", "[fd00::1]", "224.0.0.1",
		"192.0.0.192", "198.18.0.1", "[64:ff9b::a9fe:a9fe]", "[64:ff9b::10.0.0.1]", "[2002:7f00:1::1]"} {
		answer, err := through(proxy).Get("http://" + address + ":1/")
		if err != nil {
			t.Errorf("%s: %v", address, err)
			continue
		}
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %d", address, answer.StatusCode)
		}
	}
}

func TestTunnelIsCutWhenThePolicyChanges(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() { // ends with the listener
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(c, c) }() // ends with the connection
		}
	}()
	address := listener.Addr().String()
	proxy := newProxy(t, sandbox.Registries, address)
	inside, outside := net.Pipe()
	proxy.Serve(outside)
	if _, err := fmt.Fprintf(inside, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", address, address); err != nil {
		t.Fatal(err)
	}
	reader := bufio.NewReader(inside)
	answer, err := http.ReadResponse(reader, nil)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("connect: %v, %v", answer, err)
	}
	defer func() { _ = answer.Body.Close() }()
	if _, err := io.WriteString(inside, "ping\n"); err != nil {
		t.Fatal(err)
	}
	if line, err := reader.ReadString('\n'); err != nil || line != "ping\n" {
		t.Fatalf("echo: %q, %v", line, err)
	}
	proxy.SetPolicy(sandbox.NoNetwork)
	if _, err := reader.ReadByte(); err == nil {
		t.Error("the tunnel goes on")
	}
}

func TestWhatCannotBeReachedIsToldFromWhatIsRefused(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	_ = listener.Close()
	answer, err := through(newProxy(t, sandbox.Registries, address)).Get("http://" + address + "/")
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusBadGateway {
		t.Errorf("got %d, want 502", answer.StatusCode)
	}
}
