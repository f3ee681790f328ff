// Package images finds the images in the texts of issues and comments, and reads them for models
// that can see them.
//
// Addresses in such texts are whatever somebody wrote there. A file of the forge itself is read
// by the forge's adapter, with its credential. Anything else is read without any credential, by
// HTTPS only, and only from addresses that everybody on the Internet reaches: this is decided for
// each address that is dialled, after names are resolved and redirections followed. What comes is
// bounded, and is an image by its first bytes, not by its name.
package images
