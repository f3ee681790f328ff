package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestArgumentsOfAUsage(t *testing.T) {
	t.Parallel()
	for use, want := range map[string]string{
		"show TASK": "TASK", "approve TASK PLAN": "TASK PLAN", "create --role ROLE [--name NAME]": "", "import PATH|URL [--name OWNER/NAME]": "PATH|URL",
		"review ITEM [--approve | --request-changes] [--body TEXT] [--line PATH:LINE=TEXT]...": "ITEM", "reply ITEM THREAD --body TEXT": "ITEM THREAD",
		"add ITEM LABEL...": "ITEM LABEL", "classify < LOG": "", "list": "", "pause [TASK]": "", "pause TASK | --all": "TASK", "access LOGIN none|read": "LOGIN none|read",
	} {
		if got := strings.Join(Arguments(&cobra.Command{Use: use}), " "); got != want {
			t.Errorf("%q wants %q, not %q", use, got, want)
		}
	}
}

func TestWrongFlags(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"--dta x":      "tool has no flag --dta; did you mean --data?",
		"--nonsense":   "tool has no flag --nonsense",
		"-x":           "tool has no flag -x",
		"--data":       "--data needs a value: DIR",
		"--expires 1y": `--expires cannot be "1y": `,
	} {
		c := &cobra.Command{Use: "tool", SilenceErrors: true, SilenceUsage: true, RunE: func(*cobra.Command, []string) error { return nil }}
		c.Flags().String("data", "", "folder (`DIR`)")
		c.Flags().Duration("expires", 0, "how long")
		c.SetFlagErrorFunc(WrongFlag)
		c.SetArgs(strings.Fields(args))
		if err := c.ExecuteContext(t.Context()); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
}

func TestDistance(t *testing.T) {
	t.Parallel()
	got := []int{distance("", ""), distance("data", "data"), distance("dta", "data"), distance("abc", ""), distance("role", "rule")}
	if !slices.Equal(got, []int{0, 0, 1, 3, 1}) {
		t.Error(got)
	}
}
