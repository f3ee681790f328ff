// Package broker decides what is next: it takes in work from the forges, hands tasks
// to agents with leases and generations, delivers signals, sends what is in the
// outbox and lets runs go on that were cut off.
//
// What stands here so far, bottom-up:
//
//	Snapshots   items as they were read last, with their age: one reading for all
//	Action…     what can be written to a forge, as entries of the outbox
//	Sender      takes entries out of the outbox and performs them on the forges
//	Clock       the one time that all servers agree on
//	Intake      makes tasks of what people and reviewers ask for on the forges
//	Order       what is next: the one function that decides it
//	HandOut     gives tasks to the agents that wait, and Preparer what they need
//	Expiry      ends the runs of agents that are not heard of
//	Duties      what one server of several does in the background
package broker
