package command

import (
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/task"
)

// serverUser runs the server in these tests; no system knows it.
const serverUser = 61001

// newRoot is root, who connects a server that another user runs; nil where root does not run this.
func newRoot(t *testing.T) (n *newcomer, data string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Log("nothing was tested: this is for root")
		return nil, ""
	}
	n = newNewcomer(t)
	data = filepath.Join(n.folder, "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(data, serverUser, serverUser); err != nil {
		t.Fatal(err)
	}
	return n, data
}

// A token in a file that the server cannot read gets into a file of the server, and the server is
// started as its user.
func TestInitByRootForAnotherUser(t *testing.T) {
	t.Parallel()
	n, data := newRoot(t)
	if n == nil {
		return
	}
	n.serves = true
	if err := n.run(nil, n.flags("--start", "yes")...); err != nil {
		t.Fatalf("%v\n%s", err, n.shown.String())
	}
	n.wantShown("#61001 gets the secret of ", "The server runs as #61001")
	if diff := cmp.Diff([]string{"become the owner of " + data, "serve"}, n.steps); diff != "" {
		t.Error(diff)
	}
	file := filepath.Join(data, "secrets", "gitea-token")
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if is := info.Sys().(*syscall.Stat_t); is.Uid != serverUser || info.Mode().Perm() != 0o600 {
		t.Errorf("%s belongs to %d and is %s", file, is.Uid, info.Mode())
	}
	c, report := config.Load(filepath.Join(n.folder, "toryo.yaml"), nil, nil)
	if err := report.Err(); err != nil || c.Gitea.Token.Reveal() != initToken || c.Gitea.TokenFile != "data/secrets/gitea-token" {
		t.Errorf("%v: the token is in %s", err, c.Gitea.TokenFile)
	}
}

// readableByAll writes a file that every user can read, in a folder that every user can enter.
func readableByAll(t *testing.T, folder, name, text string) string {
	t.Helper()
	for _, dir := range []string{folder, filepath.Dir(folder)} {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(folder, name)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// A token that the server can read now, in a folder that a service does not see, gets into a file of
// the server too; one beside the configuration stays where it is.
func TestInitByRootWithATokenElsewhere(t *testing.T) {
	t.Parallel()
	for _, elsewhere := range []bool{true, false} {
		n, data := newRoot(t)
		if n == nil {
			return
		}
		folder := n.folder
		if elsewhere {
			folder = t.TempDir()
		}
		flags := n.flags()
		flags[slices.Index(flags, "--token-file")+1] = readableByAll(t, folder, "token", initToken+"\n")
		if err := n.run(nil, flags...); err != nil {
			t.Fatalf("%v\n%s", err, n.shown.String())
		}
		if _, err := os.Stat(filepath.Join(data, "secrets", "gitea-token")); err == nil != elsewhere {
			t.Errorf("elsewhere %t: the server has a file of its own: %v", elsewhere, err)
		}
	}
}

// A script that a service will not see is refused, although its user could read it.
func TestInitByRootWithAScriptElsewhere(t *testing.T) {
	t.Parallel()
	n, _ := newRoot(t)
	if n == nil {
		return
	}
	script := readableByAll(t, t.TempDir(), "script.yaml", "model: script\nrules: []\n")
	if err := n.run(nil, n.flags("--provider", "script", "--script", script)...); task.CodeOf(err) != task.Invalid {
		t.Errorf("it ended with %v", err)
	}
}

// A token in a variable of root's, which a service has not, gets into a file of the server. One that
// goes over all files stays where it is.
func TestInitByRootWithAVariable(t *testing.T) {
	t.Parallel()
	for variable, copied := range map[string]bool{"GITEA_TOKEN": true, "TORYO_GITEA_TOKEN": false} {
		n, data := newRoot(t)
		if n == nil {
			return
		}
		n.env = []string{variable + "=" + initToken}
		flags := n.flags()
		at := slices.Index(flags, "--token-file")
		if err := n.run(nil, slices.Delete(flags, at, at+2)...); err != nil {
			t.Fatalf("%v\n%s", err, n.shown.String())
		}
		if _, err := os.Stat(filepath.Join(data, "secrets", "gitea-token")); err == nil != copied {
			t.Errorf("%s is in a file: %t", variable, !copied)
		}
		n.wantShown("The token is taken from " + variable)
	}
}

// A data directory that is named from the folder is the same one after the server's user has gone
// elsewhere.
func TestInitByRootFromAFolder(t *testing.T) { //nolint:paralleltest // it changes the folder of the process
	n, data := newRoot(t)
	if n == nil {
		return
	}
	t.Chdir(n.folder)
	n.serves, n.goes, n.place = true, t.TempDir(), []string{"--config", "conf.yaml", "--data", "data", "--addr", n.addr}
	if err := n.run(nil, n.flags("--start", "yes")...); err != nil {
		t.Fatalf("%v\n%s", err, n.shown.String())
	}
	if n.served.DataDir != data || n.started.File != filepath.Join(n.folder, "conf.yaml") || n.started.Overrides["data_dir"] != data {
		t.Errorf("the server has its data in %s and was started by %+v", n.served.DataDir, n.started)
	}
}

// A script that the server cannot read is refused before anything is written.
func TestInitWithAScriptOfRoot(t *testing.T) {
	t.Parallel()
	n, _ := newRoot(t)
	if n == nil {
		return
	}
	script := filepath.Join(t.TempDir(), "script.yaml")
	if err := os.WriteFile(script, []byte("model: script\nrules: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	before := n.files()
	err := n.run(nil, n.flags("--provider", "script", "--script", script)...)
	if task.CodeOf(err) != task.Invalid {
		t.Errorf("it ended with %v", err)
	}
	if diff := cmp.Diff(before, n.files()); diff != "" {
		t.Error(diff)
	}
}
