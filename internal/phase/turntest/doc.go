// Package turntest is a fixed run of fifty turns with twenty tools, by which the
// cost of our own part of a turn is measured: its time, what stays the same at
// the start of each request, and the tokens that are sent. The tests hold their
// limits against it, and make bench prints its numbers.
package turntest
