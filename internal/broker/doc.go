// Package broker decides what is next. It makes tasks of what people ask for on the forges,
// hands them to agents with leases and generations, brings stops, pauses and comments to the
// runs, and takes in what runs come to.
//
//	Order       what is next: the one function that decides it
//	HandOut     gives tasks to the agents that wait
//	Expiry      ends the leases of agents that do not renew them
//	Runs        what an agent that holds a task may do: report, open a pull request, end
//	Gate        what work passes before it is published
//	Controller  stop, pause and resume
//	Watcher     looks at the items of running tasks when they change
//	Notifier    tells who waits that something happened to a task
//	StatusText  labels and comments about the state of a task
//
// What is to be done is found by broker/intake, what an agent is given is in
// broker/assignment, and the log of comments in broker/comments. What is known of items is
// in package items, writes to forges are in package outbox, and which server does the
// background work is decided in package leader.
package broker
