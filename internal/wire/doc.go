// Package wire is the protocol between server, agents and other clients: the
// shapes that travel over HTTP, and a client that speaks it.
//
// Errors travel as problems (RFC 9457) whose code is one of package task's, so
// that a client gets the same error that the server decided on.
package wire
