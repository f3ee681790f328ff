// Package backup is the file that toryo backup writes and toryo restore reads: a tar file with
// gzip. Its first entry, manifest.json, says what is in it, with the size and the SHA-256 of each
// file. The files follow in that order. The last entry, end, is the SHA-256 of the manifest, so
// that a file that was cut off is known as such.
//
// What is read may have been changed by anybody. Nothing is written but regular files with the
// names of the manifest, which stay in the folder, and no more of each than the manifest says.
package backup
