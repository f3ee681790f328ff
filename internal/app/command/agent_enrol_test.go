package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/task"
)

// The one-time token of an agent comes from a file or from standard input, where nobody else sees
// it; anything but one token is refused before the server is asked.
func TestTheTokenToEnrolWith(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "enrol")
	for name, test := range map[string]struct {
		content string
		want    string
	}{
		"a token":        {"enrol_abc\n", "enrol_abc"},
		"with a blank":   {" enrol_abc \r\n", "enrol_abc"},
		"nothing":        {"\n", ""},
		"two":            {"enrol_abc\nenrol_def\n", ""},
		"something else": {strings.Repeat("x", 1<<20), ""},
	} {
		if err := os.WriteFile(file, []byte(test.content), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, source := range []string{file, "-"} {
			o := agentRun{Program: site.Program{Stdin: strings.NewReader(test.content)}, enrolFile: source}
			token, err := o.oneTimeToken()
			if token != test.want || (err == nil) != (test.want != "") || err != nil && task.CodeOf(err) != task.Usage {
				t.Errorf("%s from %s: %q, %v", name, source, token, err)
			}
		}
	}
	if _, err := (agentRun{}).oneTimeToken(); task.CodeOf(err) != task.Unauthorized || !strings.Contains(err.Error(), "--enrol-file") {
		t.Errorf("without one: %v", err)
	}
	if _, err := (agentRun{enrolFile: filepath.Join(t.TempDir(), "none")}).oneTimeToken(); task.CodeOf(err) != task.Usage {
		t.Errorf("without the file: %v", err)
	}
}
