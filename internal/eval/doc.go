// Package eval runs sets of tasks through the whole program and says what the results are
// worth.
//
// Package taskset reads the tasks and package source makes the repositories. Each attempt is
// a run as any other, by a [Worker], on a repository without the future. What comes of it is
// scored in a fresh sandbox, to which the hidden tests come with the work. A task counts only
// if the change that people made passes there and no change does not: [Evaluation] finds that
// out first. Package tally has the numbers, and package report writes them down.
//
// All is kept in a folder, an attempt to a file, so that an evaluation that was interrupted
// goes on where it was.
package eval
