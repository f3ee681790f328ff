// Package phase carries one task through the phases of a run:
//
//	pre_planning → planning → environment_setup → execution ⇄ reflection → verification → complete
//
// [Runner.Run] is the whole of it. It has four things to work with: the [Work], a
// [Repository] with the files, a [Forge] for everything that people see, and a
// [Journal].
//
// The journal is the run. Every step is written to it before the next begins, and
// what comes next is decided from what the journal says and from nothing else. A
// run that was cut off anywhere is therefore carried on by reading the journal
// into the same state and taking the same decision. What a model said is written
// before it is acted on; what has an effect outside has a name under which it
// happens once.
//
// What is said about the work is not left to the model: tests are run here,
// placeholders are looked for here, and a run that changed nothing or did not
// pass is not a success, whatever the model says.
package phase
