// Package inspect looks at a change before it is published to a forge: for secrets in
// what it adds, for files that run or decide with rights elsewhere, for packages from
// new hosts, links out of the repository, submodules, executable and binary files.
//
// Only git objects are read, from a repository in which nothing is checked out. What an
// agent or a model says about the change is of no account. What the request asks for is
// not a finding: see [Request].
package inspect
