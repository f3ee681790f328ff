package sqlite

import (
	"net/url"
	"testing"
)

// On Windows a path begins with a drive, which SQLite must not take for a host.
func TestAddressOfAFile(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"/var/lib/toryo/a b.db": "file:///var/lib/toryo/a%20b.db?mode=rw", "C:/data/toryo.db": "file:///C:/data/toryo.db?mode=rw",
	} {
		if got := address(path, url.Values{"mode": {"rw"}}); got != want {
			t.Errorf("%s is %s, want %s", path, got, want)
		}
	}
}
