// Package server is the HTTP side of Toryo: the API for people and agents,
// health, metrics and the OpenAPI document. It turns requests into calls of the
// packages that decide, and their errors into problems (RFC 9457).
//
// Every operation of the API is registered through one function, which demands a
// token with the operation's role: there is no way to add one that is open.
package server
