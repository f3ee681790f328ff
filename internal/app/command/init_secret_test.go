package command

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/task"
)

// A pipe is read once: the token goes to a file, as from standard input, and not the name of the
// pipe into the configuration.
func TestInitTokenFromAPipe(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Log("nothing was tested: pipes have no names here")
		return
	}
	n := newNewcomer(t)
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = reader.Close() })
	if _, err := writer.WriteString(initToken + "\n"); err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	if err := n.run(nil, n.flags("--token-file", fmt.Sprint("/dev/fd/", reader.Fd()))...); err != nil {
		t.Fatalf("%v\n%s", err, n.shown.String())
	}
	c, report := config.Load(filepath.Join(n.folder, "toryo.yaml"), nil, nil)
	if err := report.Err(); err != nil || c.Gitea.Token.Reveal() != initToken {
		t.Errorf("%v: the token is in %q", err, c.Gitea.TokenFile)
	}
}

// A variable of Toryo goes over the file. A token that would be of no use because of it is
// neither taken nor asked for.
func TestInitTokenBelowAVariable(t *testing.T) {
	t.Parallel()
	for name, lines := range map[string][]string{"flags": nil, "questions": {"gitea", "URL", initToken}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNewcomer(t)
			n.env = []string{"TORYO_GITEA_TOKEN=expired-t0k3n"}
			flags := n.flags()
			if lines != nil {
				flags, lines[1] = nil, n.url
			}
			err := n.run(lines, flags...)
			if task.CodeOf(err) != task.Conflict || !strings.Contains(err.Error(), "unset TORYO_GITEA_TOKEN") {
				t.Errorf("it ended with %v\n%s", err, n.shown.String())
			}
			if n.asked > 2 || len(n.files()) > 0 {
				t.Errorf("%d questions were asked, and written was %v", n.asked, n.files())
			}
		})
	}
}
