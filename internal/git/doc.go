// Package git runs the git program so that nothing but what we say has a say: no
// configuration of the machine or of the user, no hook, no file system monitor,
// no credential store, no prompt, and no protocol but the one that a remote needs.
//
// The credential for a remote is asked for by git from a helper that we give it
// for that address only, and the helper reads it from a pipe that git inherits. So
// it is in no argument list, no environment (which /proc shows to every process of
// the user), no file and no log. Redirections are not followed.
package git
