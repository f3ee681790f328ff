//go:build !unix

package app

// lockDataDir cannot keep a second server away on this system.
func lockDataDir(path string) (unlock func() error, err error) {
	return func() error { return nil }, makeDataDir(path)
}
