//go:build !unix

package app

// lockFolder cannot keep a second process away on this system.
func lockFolder(path, _, _ string) (unlock func() error, err error) {
	return func() error { return nil }, makeDataDir(path)
}
