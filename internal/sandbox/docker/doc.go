// Package docker is the sandbox adapter for the Docker Engine, or anything that
// speaks its API.
//
// A container runs as an ordinary user without capabilities, with limits on
// memory, processors and processes, and with no network but its own loopback.
// The workspace is the only folder of the host in it. The guest's program comes
// in as a volume that is filled once and mounted to read.
//
// A snapshot is an image, made from the container, and a folder on the host with
// what was added to the workspace.
//
// The engine has to be on this machine, for it shares the workspace; and the
// guest's program has to fit the image: built without cgo it fits every image of
// this machine's kind of processor.
package docker
