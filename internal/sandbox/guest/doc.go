// Package guest is the small program that runs inside a sandbox, and the client
// with which the host speaks to it.
//
// The guest is the first process of the sandbox: the small program of package program,
// or this very program started again under another name (see [Program] and [Main]), so
// nothing has to be installed inside.
// Host and guest speak over the guest's standard input and output, which carry a
// yamux session:
//
//   - the host opens a stream for each request: hello, or run a command;
//   - the guest opens a stream for each connection that a program inside makes
//     to the proxy's address, and the host decides what becomes of it.
//
// When the session ends, because the host went away, the guest kills everything
// and ends.
//
// The host trusts nothing that comes from the guest: lengths are bounded, and a
// guest that breaks the protocol is an error of the sandbox.
package guest
