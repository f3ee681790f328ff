// Package judge is the part of reviews that needs no server: an answer in numbered
// sections, the judgement of it as JSON, and a model that is asked for one.
//
//	Section     a numbered piece of an answer, marked $$[N]
//	Judgement   what a review says, read leniently and the same way each time
//	Paper       what is to be judged: a question, an answer in sections
//	PullPaper   makes a paper of a pull request, each hunk of its diff a section
//	Judge       asks a model for the judgement of a paper and validates it
//	Verdict     a judgement as a forge takes it: verdict, text, comments on lines
//
// The agent uses it for review tasks, and the server for reviews of documents and
// for the chat about them.
package judge
