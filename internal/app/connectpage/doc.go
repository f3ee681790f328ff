// Package connectpage does what the page Connect offers to administrators, on package
// connect, which toryo init uses too: it says what is connected, looks at it, and connects
// forges and models.
//
// It works on the configuration file, not on the running server: what it writes counts from
// the next start, and the page says so. Secrets that are typed go to files in the data
// directory, and to the forge or model that they are for. Nothing that is returned, kept or
// logged has one in it: also not one that a forge repeats in its answer.
//
// The addresses are given by administrators. They may be in the operator's own network, as
// those of the configuration may, but never where a cloud answers machines about themselves.
package connectpage
