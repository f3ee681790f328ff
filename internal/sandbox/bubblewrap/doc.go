// Package bubblewrap is the sandbox adapter that needs no daemon and no root: a
// process in user, process, mount, network, IPC and host name namespaces of its
// own, made by the program bwrap. The host's toolchains are there to read, the
// home is private, and there are no images: environments use what the host has.
//
// Run by the superuser, it starts sandboxes as a user that belongs to nobody, and
// gives the workspace to that user.
//
// Memory and processes are watched by the guest, several times a second, and the
// kernel limits the processes of the sandbox's user. The share of processor time
// is not limited: that needs control groups, which ordinary users seldom have.
package bubblewrap
