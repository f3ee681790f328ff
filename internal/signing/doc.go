// Package signing signs commits with the key of the server, in the two forms that git
// and the forges know: SSH signatures, made here, and OpenPGP signatures, made by the gpg
// program. The key never leaves the server.
package signing
