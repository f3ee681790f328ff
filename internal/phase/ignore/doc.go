// Package ignore matches paths against the patterns of .gitignore files, as git
// does. It is written here because the maintained libraries for it bring a whole
// implementation of git along, and because the patterns come from repositories
// that are not trusted: no pattern may cost more than its length times the
// length of the path.
package ignore
