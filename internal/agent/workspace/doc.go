// Package workspace gives a run the files of its project, and keeps their
// history.
//
// # Two folders
//
// Git's own directory lies beside the files, where a sandbox cannot reach it. Git
// is only ever told of that one: what a sandbox writes below the files, be it
// .git, hooks, configuration, attributes or further repositories, is data. The
// files hold a plain repository too, so that programs inside find one. It is made
// once, before anything runs inside, and nothing on the host reads it again. It is
// complete, because nothing inside can fetch, and it is a copy, because programs
// inside may write to it.
//
// # Reading what a sandbox has written
//
// The files are read by us and handed to git as a stream, so that git runs no
// filter and follows no link. They are opened below the folder only: something
// inside that swaps a file for a link while we look gains nothing. Content goes
// into the history as it is, and comes out as it is: line ends are not converted.
//
// # What the history has
//
// Work in progress is one commit on top of what the run began with, at
// refs/toryo/wip in the task's namespace, made anew each time. The branch is made
// likewise at the end. Clones are shallow. Where a branch left its base is found in
// a repository of its own, which has commits without their files.
//
// Submodules and LFS pointers are left as they are. What had to be left out, or
// left alone, is said by [Workspace.Remarks].
package workspace
