// Package connect connects an installation to a forge and a model: for toryo init, which asks
// on a terminal, and for the pages, which ask in a browser. It asks nobody anything itself.
//
// [Detect] says what the machine has. [Whom] and [CheckRepository] say what a token is good
// for, right by right, and what to do about what is missing. [Installer.Apply] then makes the
// installation what [Answers] say, and [Installer.Remove] undoes that.
//
// Apply reads first and changes only what differs, so that it can be repeated. Before each
// effect it writes down in the file init.json of the data directory what it is about to do.
// Killed between any two steps, the next Apply therefore finds what was done and goes on, and
// nothing is there twice; and Remove takes away what Apply has made, and nothing else. The file
// has no secrets in it. They are in files of their own, with the mode 0600, in the folder
// secrets of the data directory: that is the one folder which a service may write to, also
// where the configuration is read-only, and a .gitignore in it keeps them out of a repository
// in which toryo init may have been started.
package connect
