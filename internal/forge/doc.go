// Package forge is the port to the places where issues and pull requests live:
// GitHub, GitLab, Gitea and Forgejo, and the board of our own. It is cut into
// small interfaces by need:
//
//	Reader      repositories, items, comments, labels' history, who may write
//	Commenter   comments in an item's conversation
//	Labeler     single labels
//	Assigner    new assignees
//	Pulls       pull (merge) requests
//	Reviewer    diffs, reviews and review threads
//	Reactor     reactions
//	Statuses    the state of a commit
//	Checks      what continuous integration says about a commit
//	Merger      merging pull requests
//	Git         how git reaches a repository
//
// [Forge] is all of them together, and is what an adapter implements. Callers
// ask for the small interface that they need.
//
// The contract of every method, unless its comment says otherwise:
//
//   - Calls may come from any number of goroutines. A context that ends makes
//     the call return soon with its error in the chain.
//   - Listings are complete, however many pages the forge cuts them into, and
//     come oldest first. When one page fails, the call fails: half a listing is
//     never returned as a whole one.
//   - Ids are the forge's own, never change, and survive edits.
//   - Logins are compared without regard to case ([task.SameLogin]) and returned
//     as the forge spells them. An account that is gone is [Ghost].
//   - Text that is read has passed [Clean]: it is valid UTF-8, its lines end in
//     "\n" and it has no NUL or other control character but tab and newline. It
//     is otherwise whole and as the author wrote it. It is untrusted.
//   - Text that is written is a [Text], which only a [Neutraliser] makes: what a
//     model or a stranger wrote cannot become a command of the forge.
//   - Times are in UTC. Forges keep them to the second or better.
//   - A write that asks for what is there already succeeds and changes nothing,
//     unless it makes something new (a comment, a review): see [Post].
//   - No call is repeated by the adapter. Whether and when to try again is the
//     caller's decision, by the error:
//
// Errors carry a code of package task, and how long to wait by [RetryAfter]:
//
//	Unauthorized  the credential is missing, wrong or expired: try again with another
//	Forbidden     the credential does not allow this: do not try again
//	NotFound      it is gone, was moved to another repository, was never there, or may
//	              not be known to us
//	Conflict      it contradicts what is there (a locked conversation, a branch that
//	              has another commit, a head that moved): read, then decide
//	Invalid       the forge will never take it as it is
//	TooLarge      the answer or what was sent is larger than the limit
//	Unsupported   this forge or this version of it cannot do that
//	Unavailable   the forge could not be reached, failed, answered nonsense or asked
//	              us to slow down: try again, not before RetryAfter
//
// A write that fails with Unavailable may have happened: the answer was lost.
// Whoever repeats it sets Repeat, and the adapter looks first: for the hidden
// [Marker] in a comment or review of ours, for the head branch of a pull request.
package forge
