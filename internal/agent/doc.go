// Package agent is the program that does the work: it asks the server for a
// task, becomes the role that the task needs, runs an executor and reports.
//
//	Agent     asks, and carries out what it is given, several tasks at a time
//	hold      one task in its hands: lease, signals, journal, progress, result
//	Executor  does the work; Command is one that lets a program do it
//
// An agent says nothing of itself but its id. It holds a task by a lease, which
// it renews by its own clock; what it says about the task it says with the token
// of that lease, and every such call may be repeated. When it cannot renew in
// time, or is told that it is late, it drops the run and says nothing more.
package agent
