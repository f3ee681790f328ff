// Package task holds the words of the system: a task and its key, type, role,
// phase and state, the signals that reach it, the comments and events that
// belong to it, the reasons for what happens to it, and the errors that every
// other package speaks in.
//
// It imports the standard library only, so that every package may import it.
//
// The life of a task is one table, [Moves]: which event leads from which state
// to which, what label the forge shows afterwards and whether a new generation
// begins. docs/state_machine.md is drawn from that table.
package task

//go:generate go run ./machinedoc ../../docs/state_machine.md
