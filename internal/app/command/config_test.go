package command

import (
	"path/filepath"
	"testing"

	"github.com/toryo-dev/toryo/internal/app/config"
)

// The configuration of a service names the data directory of that service, so that commands work
// on the same database. Any other has the default.
func TestConfigInitNamesTheDataOfTheService(t *testing.T) {
	t.Parallel()
	other := filepath.Join(t.TempDir(), "toryo.yaml")
	for file, want := range map[string]string{
		"/etc/toryo/toryo.yaml": "/var/lib/toryo", "/etc/../etc/toryo/toryo.yaml": "/var/lib/toryo", other: filepath.Join(filepath.Dir(other), "data"),
	} {
		text, err := configInit{file: file}.text()
		if err != nil {
			t.Fatal(err)
		}
		loaded, report := config.LoadText(file, text, nil, nil)
		if err := report.Err(); err != nil || loaded.DataDir != want {
			t.Errorf("%v: %s names the data directory %s, want %s", err, file, loaded.DataDir, want)
		}
	}
}
