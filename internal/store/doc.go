// Package store is the persistence port: what the rest of the system needs of a
// database, cut into small interfaces by need.
//
//	Tasks, Leases     tasks, their moves and who holds them
//	Events, Runs      the journal of every task, and what a run does with its lease
//	Halts, CommentLog the stops and pauses that are wanted, and what people said
//	Receipts          signed verdicts and the keys that they are signed with
//	Refs              what tasks have in git
//	Outbox            forge writes that are durable before they are tried
//	ForgeCache        answers of a forge, kept with their ETags
//	Deliveries, Webhooks   webhooks that were dealt with, and how far they are trusted
//	Spending          what calls to models use, and what is reserved for them
//	Questions, Reviews, Threads   reviews and the chat about them
//	BoardRepositories, BoardItems, BoardComments, BoardReviews,
//	BoardUsers, BoardReactions, BoardStatuses   the built-in board
//	Tokens, Agents    API tokens, hashed, and the agents that have them
//	Notices, Elections, Clock what several servers on one database need
//	Processes                 what is held by which process
//	Restores          going on with a database that was restored from a backup
//	Users, Sessions   who may sign in to the pages, and who has
//	Audit             what people have done
//	Retention         how long all of it is kept, and what it takes
//	StatisticsStore   how many runs, how quickly, how well, at what cost
//
// [Store] is all of them together: what an adapter implements, the suite tests and the
// program opens. Every other package asks for one of the small interfaces, or names the
// methods that it calls in an interface of its own.
//
// The contract of every method, unless its comment says otherwise:
//
//   - A write is durable when the call returns: it survives the loss of power.
//   - A call is one transaction. It takes effect whole or not at all.
//   - Calls may come from any number of goroutines and of processes; on SQLite
//     those are on one machine. A context that ends makes the call return its
//     error; the write may or may not have happened.
//   - Times are kept to the microsecond and come back in UTC. What is added
//     without the time at which it was made is made now.
//   - Ids are given by the store. An id in what is added is not looked at.
//   - Text is kept exactly, of any length, line ends and all. Only text with a
//     NUL character or that is not UTF-8 is refused, with Invalid: PostgreSQL
//     cannot keep it, and both adapters behave alike. (In JSON the NUL is written
//     \u0000 and is kept.) The causes given to Outbox.Retry and Outbox.Refuse are
//     kept with such characters replaced, since losing them would be worse.
//   - Text by which things are looked up (keys, names, labels, logins) may have
//     2000 bytes; more is refused with TooLarge.
//   - JSON is kept as text and comes back byte for byte; what is not JSON is
//     refused with Invalid. Empty lists, JSON and data come back as nil.
//   - A limit of 0 means all; one below is refused with Invalid.
//   - Errors carry a code of package task: NotFound for something that is not
//     there, Conflict for something that is there already, Invalid for what
//     cannot be stored, DatabaseDown when the database cannot be reached, DataDir
//     when its file cannot be used, Interrupted (around the context's own error)
//     when the context has ended. DatabaseDown leaves open whether a write
//     happened.
//   - Listings come in the order in which things were made, oldest first.
//
// The adapters are sqlite (one file, the default) and postgres (for several
// servers). Both say the same SQL, which is in package relational, and both pass
// the suite in package storetest.
package store
