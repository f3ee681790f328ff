package command

import (
	"testing"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

// What a person has chosen by number, before an interruption, is offered by name.
func TestInitOffersNames(t *testing.T) {
	t.Parallel()
	n := newNewcomer(t)
	if err := n.run([]string{"gitea", n.url, initToken, "1,2"}); task.CodeOf(err) != task.Interrupted {
		t.Fatalf("%v\n%s", err, n.shown.String())
	}
	if err := n.run([]string{"", "", initToken, ""}); task.CodeOf(err) != task.Interrupted {
		t.Fatalf("%v\n%s", err, n.shown.String())
	}
	n.wantShown("by number or name [team/app,team/web]: ", "Sandbox in which code runs")
}

// That another token was wanted is no name of a repository.
func TestInitDoesNotOfferTheWordToken(t *testing.T) {
	t.Parallel()
	n := newNewcomer(t)
	n.forge.Missing[forge.Push] = true
	if err := n.run([]string{"gitea", n.url, initToken, "team/app", "token"}); task.CodeOf(err) != task.Interrupted {
		t.Fatalf("%v\n%s", err, n.shown.String())
	}
	if err := n.run([]string{"", "", initToken}); task.CodeOf(err) != task.Interrupted {
		t.Fatalf("%v\n%s", err, n.shown.String())
	}
	n.wantShown("by number or name: ")
}
