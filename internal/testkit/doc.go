// Package testkit holds what the tests of several packages share: real services
// to test against, and the test that checks which package imports which.
//
// Only tests import it.
package testkit
