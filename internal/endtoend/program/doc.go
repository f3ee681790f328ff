// Package program tests the program as people use it: commands that are typed, servers
// and agents that are started as processes and killed, and a browser on the pages. The
// scripts in testdata are what a user types and sees.
package program
