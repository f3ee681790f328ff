package board_test

import (
	"testing"

	"github.com/toryo-dev/toryo/internal/forge/board"
)

// The bot's login is not given to a person, whatever a token or an account on the
// machine is called.
func TestBotIsNobodyElse(t *testing.T) {
	t.Parallel()
	opened, err := board.Open(board.Options{Folder: t.TempDir(), Bot: "toryo"})
	if err != nil {
		t.Fatal(err)
	}
	if login, ok := opened.LoginOf("Ann Lee"); !ok || login != "Ann-Lee" {
		t.Errorf("a person becomes %q", login)
	}
	for _, name := range []string{"toryo", "TORYO", " toryo "} {
		if login, ok := opened.LoginOf(name); ok {
			t.Errorf("%q becomes %q", name, login)
		}
	}
}
