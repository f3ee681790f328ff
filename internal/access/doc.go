// Package access decides who may do what: the roles, the API tokens that carry
// them, and the accounts of people with their passwords and sessions.
//
// A token is random and long, so that a plain hash of it is enough: there is
// nothing to guess. It is shown once, when it is made; the store keeps its hash.
package access
