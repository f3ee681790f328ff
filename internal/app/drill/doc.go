// Package drill breaks an installation on purpose, on throw-away data, and looks
// whether everything came out right: servers and agents are processes of this
// program, and are killed, asked to end and cut off from each other at random
// moments for a while, in the middle of work.
//
// Afterwards every task has ended exactly once, with one pull request, labels say
// what is so, and nothing was written by a run that was over.
package drill

//go:generate sh -c "$(../../../scripts/tool github.com/a-h/templ/cmd/templ) generate"
