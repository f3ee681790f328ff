// Package seccomp keeps the processes of a sandbox from system calls that reach past it,
// with a filter of the Linux kernel (seccomp). The filter is of the process that installs
// it and of all that it starts, and cannot be taken off. For example
//
//	err := seccomp.FilterCalls(seccomp.NoSockets)
//
// leaves the process and its children without any socket but connected pairs.
//
// Filters add up: of several the strictest answer holds.
package seccomp
