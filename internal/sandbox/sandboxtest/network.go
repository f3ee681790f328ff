package sandboxtest

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/sandbox/egress"
	"github.com/toryo-dev/toryo/internal/testkit"
)

// ask has bash speak to the proxy, for nothing else is sure to be inside.
func ask(request string) string {
	return fmt.Sprintf(`p=${HTTP_PROXY#http://}; exec 3<>/dev/tcp/${p%%:*}/${p##*:} && printf '%s' >&3 && cat <&3; exec 3>&-`, request)
}

func testNetwork(t *testing.T, h Harness) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "served "+r.URL.Path)
	}))
	t.Cleanup(server.Close)
	address := strings.TrimPrefix(server.URL, "http://")
	other := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(other.Close)
	otherAddress := strings.TrimPrefix(other.URL, "http://")

	list, err := egress.NewList(address)
	if err != nil {
		t.Fatal(err)
	}
	engine := h.engine(t, func(policy sandbox.Policy) sandbox.Gate {
		return egress.New(list, policy, slog.New(slog.DiscardHandler))
	})
	box := startWith(t, engine, sandbox.Spec{Owner: owner, Image: h.Image, Workspace: t.TempDir(), Network: sandbox.Registries, Limits: limits})

	plain := ask(`GET http://` + address + `/plain HTTP/1.0\r\n\r\n`)
	tunnel := ask(`CONNECT ` + address + ` HTTP/1.1\r\nHost: ` + address + `\r\n\r\nGET /tunnel HTTP/1.0\r\n\r\n`)
	want := func(command, text string) {
		t.Helper()
		if result := run(t, box, command); !strings.Contains(string(result.Stdout), text) {
			t.Errorf("%q gave %q and %q, want %q", command, result.Stdout, result.Log, text)
		}
	}
	want(plain, "served /plain")
	want(tunnel, "served /tunnel")
	want(ask(`GET http://`+otherAddress+`/ HTTP/1.0\r\n\r\n`), "403 Forbidden")
	want(ask(`CONNECT `+otherAddress+` HTTP/1.1\r\n\r\n`), "403 Forbidden")
	want(ask(`nonsense\r\n\r\n`), "400 Bad Request")
	// There is no way but through the proxy.
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	want("(echo > /dev/tcp/"+host+"/"+port+") 2>/dev/null || echo no route", "no route")

	if err := box.SetNetwork(t.Context(), sandbox.NoNetwork); err != nil {
		t.Fatal(err)
	}
	want(plain, "403 Forbidden")
	if err := box.SetNetwork(t.Context(), sandbox.OpenWorld); err != nil {
		t.Fatal(err)
	}
	want(plain, "served /plain")
	want(ask(`GET http://`+otherAddress+`/ HTTP/1.0\r\n\r\n`), "403 Forbidden") // the host's own network
	if err := box.SetNetwork(t.Context(), "sometimes"); err == nil {
		t.Error("a policy that does not exist was taken")
	}
}

func testNoNetwork(t *testing.T, h Harness) {
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	host, port, err := net.SplitHostPort(strings.TrimPrefix(server.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	box := start(t, h)
	wantOutput(t, box, "(echo > /dev/tcp/"+host+"/"+port+") 2>/dev/null || echo no route", "no route\n")
	wantOutput(t, box, "(echo > /dev/tcp/192.0.2.1/80) 2>/dev/null || echo no route", "no route\n")
	wantOutput(t, box, "(echo > /dev/udp/192.0.2.1/53) 2>/dev/null || echo no route", "no route\n")
}

// testIdleConnections has a program inside make connections to the proxy and send
// nothing. They may cost this process little, whatever the policy.
func testIdleConnections(t *testing.T, h Harness) {
	box := startWith(t, h.engine(t, NoGate), sandbox.Spec{Owner: owner, Image: h.Image, Workspace: t.TempDir(), Network: sandbox.NoNetwork})
	taken := testkit.MemoryTaken(t, func() {
		if said := probeWith(t, box, "connections=8000")["connections"]; said != works {
			t.Errorf("the connections could not be made: %s", said)
		}
	})
	if taken > 32<<20 {
		t.Errorf("8,000 idle connections took %d MB", taken>>20)
	}
	if result := run(t, box, ask(`GET http://example.org/ HTTP/1.0\r\n\r\n`)); !strings.Contains(string(result.Stdout), "403 Forbidden") {
		t.Errorf("after that the proxy says %q", result.Log)
	}
}
