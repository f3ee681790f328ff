package testkit

import (
	"os"
	"path/filepath"
	"testing"
)

const (
	// contractsFolder names the folder that scripts/contracts makes, if it is not
	// in its usual place.
	contractsFolder  = "TORYO_TEST_CONTRACTS"
	contractsVersion = "1" // as in scripts/contracts
)

// Contracts returns the path of something that a forge has published about
// itself, below the folder of scripts/contracts.
func Contracts(t testing.TB, path ...string) string {
	t.Helper()
	folder := os.Getenv(contractsFolder)
	if folder == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			t.Fatal(err)
		}
		folder = filepath.Join(cache, "toryo-test", "contracts-"+contractsVersion)
	}
	if _, err := os.Stat(folder); err != nil {
		LeaveOut(t, "what forges published about themselves ("+contractsFolder+", made by scripts/contracts)")
	}
	full := filepath.Join(append([]string{folder}, path...)...)
	if _, err := os.Stat(full); err != nil {
		t.Fatalf("%s is not complete: %v", folder, err)
	}
	return full
}
