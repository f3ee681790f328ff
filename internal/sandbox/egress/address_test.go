package egress

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/toryo-dev/toryo/internal/sandbox"
)

// metadata is where clouds answer machines about themselves, in every notation
// that an address can have by the time it is dialled.
var metadata = []string{
	"169.254.169.254", "169.254.170.2", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::1", "::a9fe:a9fe", "169.254.0.1",
	"fd00:ec2::254", "fd20:ce::254", "fe80::1", "fe80::1%eth0", "fd00:ec2::254%eth0", "168.63.129.16", "::ffff:168.63.129.16", "100.100.100.200", "192.0.0.192",
	"0.0.0.0", "::", "0.1.2.3", "224.0.0.1", "ff02::1",
}

// private is what is not public.
var private = []string{
	"127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1", "::127.0.0.1", "10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.0.1", "fc00::1", "fd12::1",
	"100.64.0.1", "198.18.0.1", "192.0.0.1", "240.0.0.1", "255.255.255.255", "64:ff9b::10.0.0.1", "2002:7f00:1::1", "2001:0:1::1", "fec0::1", "64:ff9b:1::a00:1",
}

var public = []string{"192.0.2.1", "8.8.8.8", "2606:4700::1111", "64:ff9b::808:808", "::ffff:8.8.8.8", "172.32.0.1", "100.128.0.1", "168.63.129.17"}

func TestWhatMayBeReached(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		addresses []string
		allowed   map[Trust]bool
	}{
		{metadata, map[Trust]bool{Unlisted: false, Known: false, Configured: false, Literal: true}},
		{private, map[Trust]bool{Unlisted: false, Known: false, Configured: true, Literal: true}},
		{public, map[Trust]bool{Unlisted: true, Known: true, Configured: true, Literal: true}},
	} {
		for _, address := range test.addresses {
			for trust, want := range test.allowed {
				if err := MayReach(netip.MustParseAddr(address), trust); (err == nil) != want {
					if address == "255.255.255.255" && trust == Configured {
						continue // it is a broadcast, which no connection is made to
					}
					t.Errorf("%s with trust %d: %v", address, trust, err)
				}
			}
		}
	}
}

// known is a host of the list that comes with the program.
func known(t *testing.T) string {
	t.Helper()
	for line := range strings.Lines(registries) {
		name, _, _ := strings.Cut(line, "#")
		if name = strings.TrimSpace(name); name != "" && !strings.ContainsAny(name, "*:") {
			return name
		}
	}
	t.Fatal("the list has no host")
	return ""
}

func TestWhatTheListTrusts(t *testing.T) {
	t.Parallel()
	list, err := Registries("packages.example", "*.corp.example", "10.0.0.5:8081", "[fd00:ec2::254]:80")
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]Trust{
		known(t): Known, "packages.example": Configured, "a.b.corp.example": Configured, "example.org": Unlisted, "fd00:ec2::254": Literal,
		"10.0.0.5": Unlisted, // on another port
	} {
		if got := list.Trust(host, 80); got != want {
			t.Errorf("%s is trusted %d, want %d", host, got, want)
		}
	}
	if got := list.Trust("10.0.0.5", 8081); got != Literal {
		t.Errorf("an address with its port is trusted %d", got)
	}
}

// dialled has a proxy dial and records each address that it would have dialled.
// Nothing is sent: every attempt ends before the connection is made.
func dialled(t *testing.T, policy sandbox.Policy, host string, answers func() []netip.Addr, hosts ...string) (tried, allowed []string) {
	t.Helper()
	list, err := Registries(hosts...)
	if err != nil {
		t.Fatal(err)
	}
	p := New(list, policy, slog.New(slog.DiscardHandler))
	t.Cleanup(func() { _ = p.Close() })
	var mutex sync.Mutex
	dialer := p.dialer
	p.dialer = func(trust Trust) *net.Dialer {
		d := dialer(trust)
		decide := d.Control
		d.Control = func(network, address string, c syscall.RawConn) error {
			mutex.Lock()
			defer mutex.Unlock()
			tried = append(tried, address)
			if err := decide(network, address, c); err != nil {
				return err
			}
			allowed = append(allowed, address)
			return errors.New("the test ends here")
		}
		if answers != nil {
			d.Resolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
				inside, outside := net.Pipe()
				go answerDNS(outside, answers)
				return packets{inside}, nil
			}}
		}
		return d
	}
	_, _ = p.dial(t.Context(), host, 80)
	return tried, allowed
}

// packets has the resolver speak as it does to a server over UDP.
type packets struct{ net.Conn }

func (packets) ReadFrom([]byte) (int, net.Addr, error) { return 0, nil, errors.ErrUnsupported }
func (packets) WriteTo([]byte, net.Addr) (int, error)  { return 0, errors.ErrUnsupported }

// answerDNS answers one question with addresses.
func answerDNS(connection net.Conn, answers func() []netip.Addr) {
	defer func() { _ = connection.Close() }()
	buffer := make([]byte, 1500)
	n, err := connection.Read(buffer)
	if err != nil {
		return
	}
	var message dnsmessage.Message
	if message.Unpack(buffer[:n]) != nil || len(message.Questions) != 1 {
		return
	}
	message.Response, message.RecursionAvailable, message.Additionals = true, true, nil
	for _, address := range answers() {
		header := dnsmessage.ResourceHeader{Name: message.Questions[0].Name, Class: dnsmessage.ClassINET}
		switch {
		case address.Is4() && message.Questions[0].Type == dnsmessage.TypeA:
			header.Type = dnsmessage.TypeA
			message.Answers = append(message.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AResource{A: address.As4()}})
		case address.Is6() && message.Questions[0].Type == dnsmessage.TypeAAAA:
			header.Type = dnsmessage.TypeAAAA
			message.Answers = append(message.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AAAAResource{AAAA: address.As16()}})
		}
	}
	if packed, err := message.Pack(); err == nil {
		_, _ = connection.Write(packed)
	}
}

func TestNoNameLeadsInside(t *testing.T) {
	t.Parallel()
	bad := []netip.Addr{netip.MustParseAddr("169.254.169.254"), netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("fd00:ec2::254")}
	for _, test := range []struct {
		policy sandbox.Policy
		host   string
		hosts  []string
		want   []string // of what would be dialled
	}{
		{sandbox.OpenWorld, "rebinding.example", nil, nil},
		{sandbox.OpenWorld, known(t), nil, nil},
		{sandbox.Registries, known(t), nil, nil},
		{sandbox.Registries, "packages.example", []string{"packages.example"}, []string{"10.0.0.1:80"}}, // the operator's own
		{sandbox.Registries, "x.corp.example", []string{"*.corp.example"}, []string{"10.0.0.1:80"}},
	} {
		tried, allowed := dialled(t, test.policy, test.host, func() []netip.Addr { return bad }, test.hosts...)
		if len(tried) == 0 {
			t.Errorf("%s: nothing was tried, so that nothing is shown", test.host)
		}
		if !slices.Equal(allowed, test.want) {
			t.Errorf("%s under %s would be dialled at %v, want %v", test.host, test.policy, allowed, test.want)
		}
	}
}

// The name is decided on anew for every address: what it led to before does not
// count.
func TestANameThatChangesItsMind(t *testing.T) {
	t.Parallel()
	tried, allowed := dialled(t, sandbox.OpenWorld, "rebinding.example", func() []netip.Addr {
		return []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("169.254.169.254")}
	})
	if !slices.Equal(allowed, []string{"192.0.2.1:80"}) || len(tried) < 3 {
		t.Errorf("tried were %v, allowed %v", tried, allowed)
	}
}

func TestOddNotationsOfAddresses(t *testing.T) {
	t.Parallel()
	for _, host := range []string{"127.0.0.1", "169.254.169.254", "::ffff:169.254.169.254", "::ffff:a9fe:a9fe", "0x7f.1", "2130706433", "017700000001", "127.1", "0", "[::1]", "localhost"} {
		_, allowed := dialled(t, sandbox.OpenWorld, strings.Trim(host, "[]"), func() []netip.Addr {
			return []netip.Addr{netip.MustParseAddr("127.0.0.1")} // as some systems' resolvers read it
		})
		if len(allowed) > 0 {
			t.Errorf("%s would be dialled at %v", host, allowed)
		}
	}
}

func TestAFloodOfConnectionsIsRefusedAndLoggedOnce(t *testing.T) {
	t.Parallel()
	list, err := NewList()
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	p := New(list, sandbox.NoNetwork, slog.New(slog.NewTextHandler(&log, nil)))
	var ends []net.Conn
	for range 3 * mostConnections {
		inside, outside := net.Pipe()
		p.Serve(outside)
		ends = append(ends, inside)
	}
	p.admission.mutex.Lock()
	if p.admission.all != mostConnections {
		t.Errorf("%d connections are open", p.admission.all)
	}
	p.admission.mutex.Unlock()
	for _, end := range ends {
		_ = end.Close()
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(log.String(), "\n"); lines != 2 {
		t.Errorf("%d lines were logged:\n%s", lines, log.String())
	}
}
