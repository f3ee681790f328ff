// Package environment makes a project's surroundings ready before any of its
// code is changed: it finds out what a project needs, runs the set-up commands
// of a plan in a sandbox, tells what a failure means, waits, repairs or gives
// up accordingly, verifies the outcome and remembers it.
//
//	Detect       what a folder is: manifests, environment, commands, its projects
//	Touched      whose tests a change touches
//	Classify     what a failed command's log means
//	Setup        the sub-phase: start, clone, set up, verify
//	Receipt      what set-up proved, with the tests that failed before any change
//
// An environment (python, node, ...) is an entry of a table: see
// environments.yaml. Configuration can add entries or change them.
//
// Logs, manifests and plans are written by others. They are data here: parsed,
// measured, shown, and never obeyed.
package environment
