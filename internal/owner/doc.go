// Package owner gives what root has made in the folder of another user to that user.
//
// The server of a package runs as a user of its own, and root runs commands in the server's
// folder: what they make, the server has to read and to write. Root may lack the right to give
// files away, as in a container without capabilities: then the server says that it cannot use
// them. The user may put a link in the place of anything in the folder, at any time, so files are
// opened first and given away after that.
//
// Windows has no such owners. There nothing is given away.
package owner
