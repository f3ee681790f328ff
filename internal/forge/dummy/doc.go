// Package dummy is a forge in memory, for tests of what stands above the port. It
// keeps to the port's contract, and misbehaves on request: calls fail before they
// do anything, lose their answer after they have done it, or hang.
package dummy
