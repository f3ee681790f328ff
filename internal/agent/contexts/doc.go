// Package contexts keeps the journals of runs as files.
//
//	contexts/running/<uuid>/    a run that goes on, or that was left behind
//	contexts/paused/<uuid>/     one that waits
//	contexts/completed/<uuid>/  one that is over: done, failed or stopped
//
// The uuid follows from the task and the generation in which the run began, so
// that a run has the same one on every machine.
//
// # One file counts
//
// journal.jsonl has every entry, one to a line, in order. An entry is written
// there and synced before anything else is done with it; one that is
// [phase.Entry.Followed] is synced with the next that is not. A line that a crash has torn is known by its missing
// end, and dropped. The other files are views of it, made for people and programs that
// look at a run, and are made anew from it whenever a journal is opened:
//
//	metadata.json                 which run this is, and how it stands
//	messages.jsonl                all that was said to and by the model
//	current.jsonl                 the conversation as the model has it now
//	summaries.jsonl               what stands for parts that were left out
//	tools.jsonl                   calls of tools, and how they ended
//	planning/<uuid>.jsonl         phases, plans and what set-up came to
//	task_state.json               where the run is
//	comment_detection_state.json  which comments it has taken up
//
// Files that are replaced are written beside their place, synced and renamed. A
// run moves from folder to folder by one rename. A move that fails is an error.
//
// # The server's copy
//
// Every entry is passed on to the server after it is safe here, in order. When a
// run goes on, the server's entries and ours are laid side by side: what we have
// beyond them was never acknowledged and is passed on first; where the two differ
// the run went on elsewhere and the server is right.
package contexts
