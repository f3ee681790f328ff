package app

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/store/sqlite"
)

// The periods by which something is removed are printed, and they are in the audit.
func TestPruneSaysByWhat(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	s, err := sqlite.Open(t.Context(), filepath.Join(data, site.DatabaseFile))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	var stdout, stderr bytes.Buffer
	p := site.Program{Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr, Now: time.Now, Environ: []string{"TORYO_RETENTION_AUDIT=77"}}
	if code := run(t.Context(), p, []string{"data", "prune", "--yes", "--data", data}); code != 0 {
		t.Fatalf("exit %d: %s", code, &stderr)
	}
	entries, err := s.ListAudit(t.Context(), "", 0)
	if err != nil || len(entries) != 1 {
		t.Fatalf("the audit is %v, %v", entries, err)
	}
	for where, text := range map[string]string{"standard error": stderr.String(), "the audit": entries[0].Subject} {
		if !strings.Contains(text, "journals=90 ") || !strings.Contains(text, " audit=77 ") {
			t.Errorf("%s says %q", where, text)
		}
	}
}

// Neither command brings a database to another schema.
func TestDataMakesNoTables(t *testing.T) {
	t.Parallel()
	for _, command := range [][]string{{"usage"}, {"prune", "--dry-run"}, {"prune", "--yes"}} {
		data := t.TempDir()
		file := filepath.Join(data, site.DatabaseFile)
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		var stdout, stderr bytes.Buffer
		p := site.Program{Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr, Now: time.Now}
		if code := run(t.Context(), p, append(append([]string{"data"}, command...), "--data", data)); code == 0 || !strings.Contains(stderr.String(), "nothing is in it") {
			t.Errorf("%v: exit %d: %s", command, code, &stderr)
		}
		if info, err := os.Stat(file); err != nil || info.Size() != 0 {
			t.Errorf("%v: the file has become %v, %v", command, info, err)
		}
	}
}
