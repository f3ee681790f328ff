// Package workdir is the one way in which this program touches files that code in
// a sandbox can write: those of a workspace, and what was copied from one.
//
// Such code may put anything there: a named pipe in the place of a file, which an
// open would wait on for ever; a file of many gigabytes, which would be read into
// memory; a link that leads out; a folder with a million names, or a chain of a
// million folders. And it may do so between a look and an open. So here
//
//   - a file is opened without waiting, and is looked at after that: what is not a
//     regular file is refused;
//   - a read has a limit that the caller names;
//   - nothing leads out of the folder, links included (see [os.Root]);
//   - folders are read in parts, and nothing is done below [Deepest].
//
// Linters keep the packages that handle workspaces from opening files otherwise.
package workdir
