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

// Where nobody is asked, no token goes to a host that only a git remote names: whoever has made
// the repository has chosen it.
func TestInitSendsNoTokenToAnyHost(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		env   []string
		flags func(n *newcomer) []string
		sent  bool
	}{
		"a variable":             {env: []string{"GITEA_TOKEN=" + initToken}},
		"a variable of Toryo":    {env: []string{"TORYO_GITEA_TOKEN=" + initToken}},
		"a file":                 {flags: func(n *newcomer) []string { return n.flags()[4:6] }},
		"a host that is named":   {env: []string{"GITEA_TOKEN=" + initToken}, flags: func(n *newcomer) []string { return []string{"--url", n.url} }, sent: true},
		"a configured host":      {env: []string{"TORYO_GITEA_TOKEN=" + initToken, "TORYO_GITEA_URL=URL"}, sent: true},
		"a host behind --forge":  {env: []string{"GITEA_TOKEN=" + initToken}, flags: func(*newcomer) []string { return []string{"--forge", "gitea"} }},
		"no host and no --forge": {env: []string{"GITEA_TOKEN=" + initToken}, flags: func(*newcomer) []string { return []string{"--repository", "team/app"} }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNewcomer(t)
			n.git("init", "-q")
			n.git("remote", "add", "origin", n.url+"/team/app.git")
			for _, variable := range test.env {
				n.env = append(n.env, strings.ReplaceAll(variable, "=URL", "="+n.url))
			}
			flags := []string{"--yes", "--provider", "none"}
			if test.flags != nil {
				flags = append(flags, test.flags(n)...)
			}
			err := n.run(nil, flags...)
			if test.sent {
				if err != nil {
					t.Errorf("%v\n%s", err, n.shown.String())
				}
				return
			}
			if task.CodeOf(err) != task.Usage || !strings.Contains(err.Error(), "--url") || n.opened > 0 {
				t.Errorf("it ended with %v, and the forge was asked %d times", err, n.opened)
			}
		})
	}
}

// A file with a token that every user of the machine can read is pointed out.
func TestInitWarnsOfAReadableToken(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Log("nothing was tested: modes mean nothing here")
		return
	}
	n := newNewcomer(t)
	flags := n.flags("--json")
	if err := os.Chmod(flags[5], 0o644); err != nil {
		t.Fatal(err)
	}
	if err := n.run(nil, flags...); err != nil {
		t.Fatalf("%v\n%s", err, n.shown.String())
	}
	n.wantShown("every user of this machine can read", "chmod 600")
	if !strings.Contains(n.out.String(), `"warnings"`) {
		t.Errorf("the summary is %s", n.out.String())
	}
}
