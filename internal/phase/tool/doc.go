// Package tool holds what a model can do: run commands, read, list, search and
// edit files, apply patches, look at the diff, run the tests, keep a to-do list,
// ask a person and finish. Each tool is a file with its description beside it.
//
// A [Box] holds the tools of a phase and carries out the calls of an answer.
// Whatever a model sends it has a defined result: arguments that are not JSON or
// do not fit the schema, unknown tools, calls without an ID, too many calls. An
// error of a tool is a result for the model and never ends the run; only what
// keeps the run itself from going on (a sandbox that is gone, a context that has
// ended) is an error of the box.
//
// Everything happens inside a [Workspace]. No path leads out of it.
package tool
