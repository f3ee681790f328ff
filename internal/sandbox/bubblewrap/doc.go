// Package bubblewrap is the sandbox adapter that needs no daemon and no root: a
// process in user, process, mount, network, IPC and host name namespaces of its
// own, made by the program bwrap. The host's toolchains are there to read, the
// home is private, and there are no images: environments use what the host has.
//
// Run by the superuser, it starts sandboxes as a user that belongs to nobody, and
// gives the workspace to that user.
//
// A control group limits memory, threads and processor time where this program may
// make one. Otherwise the guest counts memory and processes several times a second,
// the kernel limits the processes of the sandbox's user, and processor time is not
// limited.
package bubblewrap
