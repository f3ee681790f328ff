package guest

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
)

// TestNoMoreIsKeptThanMayBe: an archive has the holes of files filled, so that files with holes are no
// part of one that would have more than the sandbox may take, whether they are seen before or as it is
// written.
func TestNoMoreIsKeptThanMayBe(t *testing.T) {
	t.Parallel()
	const most = 1 << 20
	home := t.TempDir()
	s := &server{options: Options{Home: home, Workspace: t.TempDir(), Snapshots: t.TempDir(), Disk: most}}
	var whole counter
	if err := s.pack(&whole, nil); err != nil {
		t.Errorf("what is small gave %v", err)
	}
	for _, name := range []string{"one", "two"} {
		file := filepath.Join(home, name)
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(file, most*3/4); err != nil {
			t.Fatal(err)
		}
	}
	host, inside := net.Pipe()
	go func() { _ = errors.Join(writeNames(host, nil), host.Close()) }() // which end with what reads them
	if _, err := s.keep(inside); !errors.Is(err, errKeepsTooMuch) {
		t.Errorf("it gave %v", err)
	}
	if left, err := os.ReadDir(s.options.Snapshots); err != nil || len(left) > 0 {
		t.Errorf("it wrote %v, %v", left, err)
	}
	var written counter
	if err := s.pack(&written, nil); !errors.Is(err, errKeepsTooMuch) || written.bytes > most {
		t.Errorf("the archive gave %v and has %d bytes", err, written.bytes)
	}
}
