// Package agent is the program that does the work: it asks the server for a
// task, becomes the role that the task needs, runs an executor and reports.
//
// What stands today is the check-in. Taking tasks needs the server's hand-out.
package agent
