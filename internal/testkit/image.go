package testkit

import (
	"os"
	"path/filepath"
	"testing"
)

const (
	// imagePackagesFolder names the folder that scripts/image-packages makes, if it is not
	// in its usual place.
	imagePackagesFolder  = "TORYO_TEST_IMAGE_PACKAGES"
	imagePackagesVersion = "2" // as in scripts/image-packages
)

// ImagePackages is the folder with the Debian packages that an image of the program is made
// from.
func ImagePackages(t testing.TB) string {
	t.Helper()
	Release(t)
	folder := os.Getenv(imagePackagesFolder)
	if folder == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			t.Fatal(err)
		}
		folder = filepath.Join(cache, "toryo-test", "image-packages-"+imagePackagesVersion)
	}
	if _, err := os.Stat(folder); err != nil {
		LeaveOut(t, "the Debian packages of an image ("+imagePackagesFolder+", made by scripts/image-packages)")
	}
	return folder
}
