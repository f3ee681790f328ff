// Package testfiles says which files of a repository are tests, or say how its tests
// are run. A change to those is looked at apart from a change to the program: whoever
// changes a test can make it pass.
//
// It goes by names and, for files that serve several purposes, by what differs in them.
// To take a file of the program for a test does little harm: tests are run once more
// with that file as it was before. To take a test for a file of the program lets a
// changed test count, so in doubt a file is a test.
package testfiles
