// Package notice says on an item what became of its task: that it is done, has
// failed, was stopped or paused, or goes on. The server and the agents say it with
// the same words and in the same form, in both languages.
package notice
