package sandbox

import "net"

// Gate decides what becomes of the connections that programs in one sandbox
// make. It is the sandbox's only way out.
type Gate interface {
	// Serve takes over a connection from inside, on which the proxy protocol of
	// HTTP is spoken. It returns at once.
	Serve(connection net.Conn)
	// SetPolicy changes the policy and cuts what it does not allow.
	SetPolicy(policy Policy)
	// Close cuts everything.
	Close() error
}

// NewGate makes the gate of a new sandbox. Package egress has the real one.
type NewGate func(policy Policy) Gate
