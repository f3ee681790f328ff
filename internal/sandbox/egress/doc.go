// Package egress is the filtering proxy that stands between a sandbox and the
// network. A sandbox has no other route: its only network device is its own
// loopback, where the guest takes connections and hands them to the host.
//
// It speaks the two forms of the HTTP proxy protocol: CONNECT, and requests with
// an absolute http address. Programs find it through the usual environment
// variables. What does not speak HTTP through a proxy (a database protocol, SSH,
// DNS, UDP) has no way out, under any policy.
//
// Policies: "none" refuses everything; "registries" lets through the hosts of the
// list on their ports; "open" lets through every public address. An address
// inside the host's own networks (loopback, private) is refused unless the operator
// named its host, and a cloud's metadata service unless the operator named that
// very address: see [MayReach]. What is decided on is the address that is dialled.
//
// A sandbox may have 128 connections at one time, and each has to be used.
package egress
