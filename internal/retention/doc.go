// Package retention removes what was kept for long enough: the leader from the database, and
// each server from its mirrors. What takes space and is not in the database belongs to one
// machine, and that machine removes it; agents do the same with their context files and
// snapshots.
//
// Everything is done in small steps that may be cut off at any moment and are done again:
// a step of the database is one short transaction, and a step of a mirror is the work of one task.
package retention
