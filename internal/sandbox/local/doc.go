// Package local has what engines share whose sandboxes are on this machine: as which
// user they run, which processes they are, and where their snapshots are kept.
package local
