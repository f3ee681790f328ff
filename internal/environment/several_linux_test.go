package environment_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/environment"
	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/testkit"
	"github.com/toryo-dev/toryo/internal/workdir"
)

// Two projects with a virtual environment each do not get into each other's, neither
// when they are set up nor from the snapshot of that.
func TestProjectsKeepTheirEnvironmentsApart(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("bwrap"); err != nil {
		testkit.LeaveOut(t, "bubblewrap")
	}
	setup := realSetup(realEngine(t, realEngines["bubblewrap"]))
	setup.SetupNetwork = sandbox.NoNetwork
	for _, warm := range []bool{false, true} {
		workspace := t.TempDir()
		for _, name := range []string{"one", "two"} {
			if err := os.Mkdir(filepath.Join(workspace, name), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(workspace, name, "requirements.txt"), []byte("# nothing\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		outcome, err := setup.Run(t.Context(), environment.Request{Source: environment.Source{Project: t.Name()},
			Plan: environment.Selection{Name: "python", Directory: "two"}, Spec: sandbox.Spec{Owner: "several", Workspace: workspace}})
		if err != nil || outcome.Result.OverallStatus != environment.Succeeded || len(outcome.Receipt.Projects) != 2 {
			t.Fatalf("%+v, %v", outcome.Result, err)
		}
		if from := outcome.Result.SetupResult.FromSnapshot; (from != "") != warm {
			t.Errorf("it started from the snapshot %q: %v", from, outcome.Result.Warnings)
		}
		for _, p := range outcome.Receipt.Projects {
			ran, err := outcome.Sandbox.Run(t.Context(), p.Command(`python -c 'import sys; print(sys.prefix)'`))
			if err != nil || !strings.HasSuffix(strings.TrimSpace(string(ran.Stdout)), "/"+p.Directory+"/.venv") || !p.Ready {
				t.Errorf("%s has %s%v", p.Directory, ran.Log, err)
			}
		}
		// The session that the work goes on in is that of the plan's project, at the top.
		ran, err := outcome.Sandbox.Run(t.Context(), sandbox.Command{Text: `ls; echo "${VIRTUAL_ENV##*workspace/}"`})
		if err != nil || string(ran.Stdout) != "one\ntwo\ntwo/.venv\n" {
			t.Errorf("the work goes on with %s%v", ran.Log, err)
		}
		if err := outcome.Sandbox.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := workdir.Remove(workspace); err != nil {
			t.Error(err)
		}
	}
}
