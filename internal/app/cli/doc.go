// Package cli is what the commands have in common: the flags that name the
// configuration, commands that only hold others, work on the database without a server,
// and what is printed on a terminal.
package cli
