// Package broker decides what is next: it takes in work from the forges, hands tasks
// to agents with leases and generations, delivers signals, sends what is in the
// outbox and lets runs go on that were cut off.
//
// Nothing stands here yet but its place in the import table.
package broker
