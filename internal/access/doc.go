// Package access decides who may do what: the roles, and the API tokens that
// carry them.
//
// A token is random and long, so that a plain hash of it is enough: there is
// nothing to guess. It is shown once, when it is made; the store keeps its hash.
package access
