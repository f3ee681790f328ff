package testkit

import (
	"os"
	"path/filepath"
	"testing"
)

// contractsFolder names the folder that scripts/contracts.sh makes.
const contractsFolder = "TORYO_TEST_CONTRACTS"

// Contracts returns the path of something that a forge has published about
// itself, below the folder of scripts/contracts.sh.
func Contracts(t testing.TB, path ...string) string {
	t.Helper()
	folder := os.Getenv(contractsFolder)
	if folder == "" {
		LeaveOut(t, "what forges published about themselves ("+contractsFolder+")")
	}
	full := filepath.Join(append([]string{folder}, path...)...)
	if _, err := os.Stat(full); err != nil {
		t.Fatalf("%s is not complete: %v", contractsFolder, err)
	}
	return full
}
