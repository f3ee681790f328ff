package command

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/task"
)

// Labels of which nobody knows whether closed issues have them stay: a database that this version
// cannot read may have tasks in it.
func TestInitRemoveBesideAnUnreadableDatabase(t *testing.T) {
	t.Parallel()
	n := newNewcomer(t)
	if err := n.run(nil, n.flags()...); err != nil {
		t.Fatal(err)
	}
	n.write(filepath.Join("data", site.DatabaseFile), strings.Repeat("of another program\n", 100))
	if err := n.run(nil, "--remove", "--yes"); err != nil {
		t.Fatal(err)
	}
	labels, err := n.forge.As(initToken).Labels(t.Context(), "team/app")
	if err != nil || len(labels) != 7 {
		t.Errorf("the labels are %v, %v", labels, err)
	}
	n.wantShown(`! label "coding agent" of team/app: it stays, remove it by hand`)
}

// Where a forge does not answer, it is said how to undo the rest.
func TestInitRemoveNamesLocal(t *testing.T) {
	t.Parallel()
	n := newNewcomer(t)
	if err := n.run(nil, n.flags()...); err != nil {
		t.Fatal(err)
	}
	n.down = true
	if err := n.run(nil, "--remove", "--yes"); task.CodeOf(err) != task.Unavailable {
		t.Errorf("it ended with %v", err)
	}
	n.wantShown("toryo init --remove --local")
	if err := n.run(nil, "--remove", "--local", "--yes"); err != nil || len(n.files()) > 0 {
		t.Errorf("%v; left: %v", err, n.files())
	}
	if err := n.run(nil, "--local"); task.CodeOf(err) != task.Usage {
		t.Errorf("without --remove: %v", err)
	}
}

// To undo everything, Enter is not enough.
func TestInitRemoveWantsAYes(t *testing.T) {
	t.Parallel()
	n := newNewcomer(t)
	if err := n.run(nil, n.flags()...); err != nil {
		t.Fatal(err)
	}
	before := len(n.files())
	if err := n.run([]string{""}, "--remove"); task.CodeOf(err) != task.Interrupted || len(n.files()) != before {
		t.Errorf("after Enter: %v, %d files of %d", err, len(n.files()), before)
	}
	if err := n.run(nil, "--remove"); task.CodeOf(err) != task.Usage || !strings.Contains(err.Error(), "give --yes") {
		t.Errorf("where nobody is asked: %v", err)
	}
	if err := n.run([]string{"yes"}, "--remove"); err != nil || len(n.files()) > 0 {
		t.Errorf("after yes: %v, %v", err, n.files())
	}
}
