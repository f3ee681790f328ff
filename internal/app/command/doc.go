// Package command is the commands of the program, one file for each.
//
// Each command is a struct of options with a run method, so that reading the command
// line and doing the work can be tested apart. A command returns its error; package app
// prints it in one line and turns its code into the exit code.
package command
