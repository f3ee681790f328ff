// Package outbox writes to forges. A write is an entry in the database, made in the same
// transaction as what it follows from, before it is sent.
//
//	Payload, Action  what can be written
//	Sender           takes entries out of the outbox and performs them, in order
//	Labels           the label of a task's state
package outbox
