package egress

import (
	"errors"
	"net/netip"
	"slices"
)

// Trust is what the list says of a host.
type Trust int

// The degrees of trust.
const (
	// Unlisted is a host that only the policy "open" lets through.
	Unlisted Trust = iota
	// Known is a host of the list that comes with the program. It is a public one,
	// wherever its name leads.
	Known
	// Configured is a host that the operator named. It may be one of the operator's
	// own network.
	Configured
	// Literal is an address that the operator named as such.
	Literal
)

var errRefused = errors.New("the network policy of the sandbox does not allow this")

// MayReach decides on an address that a host's name has led to, or that was given
// in place of a name. It is asked for every address that is dialled, after names
// are resolved, so that no name, no notation and no answer that changes leads
// elsewhere.
func MayReach(address netip.Addr, trust Trust) error {
	ip := meant(address)
	switch {
	case trust == Literal:
		return nil
	case !ip.IsValid() || ip.IsUnspecified() || ip.IsMulticast() || contains(never, ip):
		return errRefused
	case trust == Configured:
		return nil
	case !ip.IsGlobalUnicast() || ip.IsPrivate() || contains(inside, ip):
		return errRefused
	}
	return nil
}

func contains(networks []netip.Prefix, ip netip.Addr) bool {
	return slices.ContainsFunc(networks, func(network netip.Prefix) bool { return network.Contains(ip) })
}

func networks(texts ...string) []netip.Prefix {
	all := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		all[i] = netip.MustParsePrefix(text)
	}
	return all
}

// never is where clouds answer machines about themselves, with credentials. No
// name leads there, not even one that the operator listed.
var never = networks(
	"169.254.0.0/16", "fe80::/10", // link-local: most clouds
	"fd00:ec2::/32", "fd20:ce::/32", // Amazon and Google, by IPv6
	"168.63.129.16/32",   // Azure
	"100.100.100.200/32", // Alibaba
	"192.0.0.192/32",     // Oracle
	"0.0.0.0/8",
)

// inside are networks that are not public, besides those that the standard library
// knows.
var inside = networks("100.64.0.0/10", "192.0.0.0/24", "198.18.0.0/15", "240.0.0.0/4", "fec0::/10", "2001::/32", "64:ff9b:1::/48", "100::/64")

// carriers are networks of IPv6 whose addresses stand for one of IPv4, which
// begins at the given byte.
var carriers = []struct {
	prefix netip.Prefix
	at     int
}{
	{netip.MustParsePrefix("64:ff9b::/96"), 12}, {netip.MustParsePrefix("2002::/16"), 2},
	{netip.MustParsePrefix("::/96"), 12}, {netip.MustParsePrefix("::ffff:0:0:0/96"), 12},
}

// meant is the address that is reached in the end.
func meant(ip netip.Addr) netip.Addr {
	ip = ip.WithZone("").Unmap()
	if ip == netip.IPv6Loopback() || ip == netip.IPv6Unspecified() {
		return ip
	}
	for _, carrier := range carriers {
		if carrier.prefix.Contains(ip) {
			bytes := ip.As16()
			return netip.AddrFrom4([4]byte(bytes[carrier.at : carrier.at+4]))
		}
	}
	return ip
}
