//go:build !unix

package owner

import (
	"io/fs"
	"os"
)

// Give does nothing here.
func Give(*os.File, fs.FileInfo) {}

// GiveTree does nothing here.
func GiveTree(string, ...string) error { return nil }
