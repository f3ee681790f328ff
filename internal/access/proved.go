package access

import (
	"context"
	"net"
	"net/netip"
)

type provedKey struct{}

// WithProved returns a context in which proved is called when whoever makes a
// request has shown a secret that is good: the token of the API or of a lease, a
// one-time token, or the secret of a session. Until then the server spends little
// on the request. It may be called more than once and by any goroutine.
func WithProved(ctx context.Context, proved func()) context.Context {
	return context.WithValue(ctx, provedKey{}, proved)
}

func prove(ctx context.Context) {
	if proved, is := ctx.Value(provedKey{}).(func()); is {
		proved()
	}
}

// Network is what counts as one client among those who are limited by address, for
// an address with or without a port: of IPv6 the /64 network, since one host has as
// many addresses in it as it likes, and of an IPv4 address written as IPv6 the
// IPv4 address.
func Network(remote string) string {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		host = remote
	}
	address, err := netip.ParseAddr(host)
	if err != nil {
		return host
	}
	address = address.Unmap().WithZone("")
	if address.Is4() {
		return address.String()
	}
	network, err := address.Prefix(64)
	if err != nil {
		return host
	}
	return network.String()
}
