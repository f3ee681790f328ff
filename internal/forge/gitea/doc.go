// Package gitea is the adapter to Gitea and Forgejo.
//
// It uses the Gitea SDK, and makes requests by itself where the SDK does not know what
// the server has: the timeline of an issue, labels by name.
//
// What is peculiar to Gitea:
//
//   - Assignees can only be replaced as a set, so they are read and written. A
//     change that a person makes in between is lost.
//   - A draft is a pull request whose title starts with "WIP:".
//   - Comments on one line of a diff are one thread: Gitea has no id for it, so
//     its first comment's is taken. A reply is a review with one comment.
//   - Gitea does not say whether a comment on a line is outdated.
//   - Actions set statuses of commits, and only the address in them leads to a job.
//   - Only an administrator of a repository may ask what someone else may do in
//     it. For others the adapter looks who can be assigned, which is who can
//     write: then WriteAccess may stand for AdminAccess. In a repository of an
//     organisation that has teams which cannot push, this does not tell writers
//     from readers, and those have WriteAccess whom we see in a team that can.
//   - What someone may do as a member of a team is not in what Gitea answers to
//     administrators either.
package gitea
