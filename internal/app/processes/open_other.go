//go:build !unix

package processes

// openAsFile says nothing here.
const openAsFile = 0
