package app

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/app/site"
)

// The last error of a command cannot command the terminal, whoever has said what is in it.
func TestAnErrorIsPlainText(t *testing.T) {
	t.Parallel()
	var stdout, stderr bytes.Buffer
	p := site.Program{Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr, Now: time.Now}
	code := run(t.Context(), p, []string{"data", "usage", "--config", t.TempDir() + "/x\x1b[2J\u202ey"})
	if code == 0 || !strings.Contains(stderr.String(), "x[2Jy") || strings.ContainsAny(stderr.String(), "\x1b\u202e") {
		t.Errorf("exit %d: %q", code, stderr.String())
	}
}
