// Package forgetest is the conformance suite of the forge port: what every
// adapter has to do, run against the real thing.
//
// An adapter's test gives a [Fixture], by which the suite makes people, items and
// commits on the forge from outside, and calls [Run]. An adapter that uses HTTP
// also calls [RunFaults] with a [Proxy] in between that makes requests fail.
package forgetest
