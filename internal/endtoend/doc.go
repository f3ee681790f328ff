// Package endtoend runs whole installations: servers, agents, a forge, real git and
// real sandboxes, each server and agent a process of its own, as people start them.
// Only the model is not real: it answers over HTTP what a script says.
//
// A test makes a house, and lets scenarios happen in it. A scenario is data, as
// package phasetest describes it: an item, what the model answers, what happens at
// which moment, and what has to be the case at the end. Many of them happen in one
// house at the same time, each in a repository of its own.
//
// The moments of a scenario are entries of the journal. Agents in a house are on a
// leash: after each entry they tell the house of it and wait for its word. So the
// house can do something right then: comment, unassign, pause, kill. What it has
// done reaches the run on the same way as ever, and the leash waits for that before
// it lets the run go on.
package endtoend
