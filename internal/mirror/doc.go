// Package mirror brings git to the agents. It keeps a bare mirror of each
// repository, fetched from the forge once for all tasks, serves it over HTTP with
// git http-backend, each task in a git namespace of its own, and publishes what a
// task has made, one branch, to the forge.
//
// # What an agent can do
//
// An agent shows the token of its lease. It sees the branches that its task was
// seeded with and what the task has pushed, and may push what it likes: it stays
// below refs/namespaces/<task>/ in the mirror. A push is asked about a second
// time just before git moves the refs, so that a run that ended in the middle of
// its push moves none. Objects are shared: whoever knows the hash of a commit of
// another task on the same repository can fetch it.
//
// # The forge's credential
//
// Git asks a credential helper for it, which we give it for the forge's address
// only, and the helper reads it from a pipe that git inherits. So the credential
// is in no argument list, no environment (which /proc shows to every process of
// the user), no file, no remote and no log. Redirections are not followed.
//
// # Hostile repositories
//
// A mirror is bare and nothing is ever checked out of it, so that no filter,
// attribute or submodule of a repository takes effect; its hooks are not run and
// alternates do not come with a fetch. Objects are checked before they are
// accepted, packs have a limit, and git is only allowed the protocol that the
// forge needs. No configuration of the machine or of the user is read.
package mirror
