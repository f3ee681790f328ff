package app

import (
	"bytes"
	"encoding/json"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/store/relational"
)

// Scripts read what a program is without parsing a line for people.
func TestVersionAsJSON(t *testing.T) {
	t.Parallel()
	var stdout, stderr bytes.Buffer
	p := site.Program{Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr, Now: time.Now}
	if code := run(t.Context(), p, []string{"version", "--json"}); code != 0 {
		t.Fatalf("exit %d: %s", code, &stderr)
	}
	var said struct {
		Version, Go, OS, Arch string
		Schema                int64
	}
	if err := json.Unmarshal(stdout.Bytes(), &said); err != nil {
		t.Fatalf("%v in %s", err, &stdout)
	}
	schema, err := relational.LatestVersion()
	if err != nil {
		t.Fatal(err)
	}
	if said.Version == "" || said.Go != runtime.Version() || said.OS != runtime.GOOS || said.Arch != runtime.GOARCH || said.Schema != schema {
		t.Errorf("it says %+v", said)
	}
}
