// Package forgeworld is a small forge without an API: people, repositories with
// real git, items and what is said about them. Tests of the adapters to forges
// that cannot be run put the API of that forge in front of it, checked against
// the forge's own published contract.
//
// Everything in a World is guarded by its lock, which the caller holds. The
// methods of [Fixture] take it themselves.
package forgeworld
