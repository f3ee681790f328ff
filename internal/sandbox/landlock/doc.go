// Package landlock is the sandbox adapter for machines that have neither a
// container engine nor bubblewrap: a process that confines itself with Landlock
// and a system call filter. It is for demos and a person's own folders, and is
// never chosen for work from a forge.
//
// What it confines: files outside workspace, home and temporary folder cannot be
// written, and only toolchains and settings can be read; no socket can be made but
// connected pairs, so there is no network, not even loopback, and no way to the
// local sockets of the host's services; there are no shared memory segments,
// message queues and keys of the user; processes outside cannot be traced, and on
// Linux 6.12 and later not be sent signals.
//
// What it does not: names and command lines of the host's processes can be seen,
// paths are the host's own, and there are no snapshots and no network policies
// but "none".
package landlock
