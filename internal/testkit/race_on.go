//go:build race

package testkit

// raceFactor is how many times as much memory the race detector makes a process take:
// it keeps shadow cells for each word.
const raceFactor = 4
