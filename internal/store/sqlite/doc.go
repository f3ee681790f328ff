// Package sqlite keeps everything in one file, without a server: the default.
//
// The file is in write-ahead mode and is synced at every commit. One connection
// writes, several read. Other processes may have the same file open, for example
// a command that makes a token beside a running server.
package sqlite
