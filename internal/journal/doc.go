// Package journal reads the journal of a task for people. What is in an entry is decided
// here for the pages and the terminal. Which entries make a step and what is not worth showing
// is for the pages; the terminal prints every entry, and stops at one that cannot be read.
//
// Entries are written by agents, which may be of another version, or not be trusted at
// all. So an entry is read as far as it can be: fields that are not known are passed over,
// those that are missing are empty, and one of the wrong type is empty and noted in
// [Entry.Unreadable]. For example
//
//	{"step":"one","text":"Something for people.","added_later":true}
//
// is an entry with that text, without a step, and unreadable. Texts are as they were
// written, of any length and with any characters: who shows them makes them fit.
//
// The phases write more than is here; see package phase for all that a run goes on from.
package journal
