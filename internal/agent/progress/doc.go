// Package progress shows how a run is getting on: it makes the text of the one
// comment that a run has on its item, from the entries of the run's journal and
// nothing else. So the comment is the same whichever machine the run goes on at.
//
// Titles, plans, notes and names come from people and models. They are shown as
// text: they cannot mention anyone, refer to other items, or bring markup along.
// The comment has a limit, whatever a run does.
package progress
