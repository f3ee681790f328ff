package command

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/task"
)

// dryRun says what would be done for an installation at a place.
func (n *newcomer) dryRun(place ...string) summary {
	n.Helper()
	n.place = slices.Concat(place, []string{"--addr", n.addr})
	if err := n.run(nil, n.flags("--dry-run", "--json")...); err != nil {
		n.Fatalf("%v\n%s", err, n.shown.String())
	}
	var said summary
	if err := json.Unmarshal(n.out.Bytes(), &said); err != nil {
		n.Fatal(err)
	}
	return said
}

// The data of the service that the packages have are where the service looks for them, which its
// configuration does not say.
func TestInitForTheService(t *testing.T) {
	t.Parallel()
	n := newNewcomer(t)
	if got := n.dryRun("--config", "/etc/toryo/toryo.yaml").Data; got != "/var/lib/toryo" {
		t.Errorf("the data are in %s", got)
	}
	n.wantShown("data_dir")
	n.env = []string{"TORYO_DATA_DIR=/srv/toryo"}
	if got := n.dryRun("--config", "/etc/toryo/toryo.yaml").Data; got != "/srv/toryo" {
		t.Errorf("the data that a variable names are in %s", got)
	}
}

// With a configuration that is named, the data directory is written down: the next command may be
// started in another folder.
func TestInitWritesDownWhereTheDataAre(t *testing.T) {
	t.Parallel()
	n := newNewcomer(t)
	said := n.dryRun("--config", filepath.Join(n.folder, "conf.yaml"))
	if !filepath.IsAbs(said.Data) {
		t.Errorf("the data are in %s", said.Data)
	}
	n.wantShown("conf.yaml: data_dir, ")
}

// What is wrong with a configuration, and no answer changes, is said before the first question.
func TestInitBesideAWrongKey(t *testing.T) {
	t.Parallel()
	for key, text := range map[string]string{"log.level": "log:\n  level: loud\n", "llm.max_tokens": "llm:\n  max_tokens: many\n"} {
		n := newNewcomer(t)
		n.write("toryo.yaml", text)
		err := n.run([]string{"gitea"})
		if task.CodeOf(err) != task.BadConfig || !strings.Contains(err.Error(), key) || n.asked+n.opened > 0 {
			t.Errorf("%s: it ended with %v after %d questions", key, err, n.asked)
		}
	}
}

// What an answer puts right is shown and put right.
func TestInitPutsAKeyRight(t *testing.T) {
	t.Parallel()
	n := newNewcomer(t)
	n.write("toryo.yaml", "gitea:\n  url: "+n.url+"\n  owner: team\n  bot_name: "+initBot+"\n  token_file: gone\n")
	if err := n.run(nil, n.flags()...); err != nil {
		t.Fatalf("%v\n%s", err, n.shown.String())
	}
	n.wantShown("! "+filepath.Join(n.folder, "toryo.yaml")+":5:", "gitea.token_file")
	c, report := config.Load(filepath.Join(n.folder, "toryo.yaml"), nil, nil)
	if err := report.Err(); err != nil || c.Gitea.Token.Reveal() != initToken {
		t.Errorf("the configuration: %v", err)
	}
}
