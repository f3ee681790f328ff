// Package store is the persistence port: what the rest of the system needs of a
// database, cut into small interfaces by need.
//
//	Tasks, Leases     tasks, their moves and who holds them
//	Events            the journal of every task
//	Outbox            forge writes that are durable before they are tried
//	ForgeCache        answers of a forge, kept with their ETags
//	Questions, Reviews, Threads   reviews and the chat about them
//	BoardRepositories, BoardItems, BoardComments, BoardReviews   the built-in board
//	Tokens            API tokens, hashed
//
// [Store] is all of them together, and is what an adapter implements. Callers
// ask for the small interface that they need.
//
// The contract of every method, unless its comment says otherwise:
//
//   - A write is durable when the call returns: it survives the loss of power.
//   - A call is one transaction. It takes effect whole or not at all.
//   - Calls may come from any number of goroutines and, on PostgreSQL, from any
//     number of processes. A context that ends makes the call return its error;
//     the write may or may not have happened.
//   - Times are kept to the microsecond and come back in UTC.
//   - Errors carry a code of package task: NotFound for something that is not
//     there, Conflict for something that is there already, DatabaseDown when the
//     database cannot be reached.
//   - Listings come in the order in which things were made, oldest first.
//
// The adapters are sqlite (one file, the default) and postgres (for several
// servers). Both say the same SQL, which is in package relational, and both pass
// the suite in package storetest.
package store
