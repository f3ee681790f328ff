// Package harbor runs task folders as Harbor and Terminal-Bench have them: an image with files to
// work on, and a script that looks at the result and writes a reward.
//
// The files in the working directory of the image become the one commit of a repository, so that
// such a task is worked on as any other. What an attempt is scored by is its patch, applied in a
// fresh container of the image in which nothing of the attempt has ever run. Then the tests come
// in. All of a task folder was written by others: its programs run in containers only, without
// network unless the person allows it, and its Dockerfile sees no other file than those beside it.
package harbor
