// Package sandboxtest is the suite that every sandbox adapter passes, against the
// real thing. It puts the worst that a command can do into each of them.
package sandboxtest
