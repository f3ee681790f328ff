package access_test

import (
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/store/sqlite"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
)

// A person is the same whichever way the person comes.
func TestWhoSomebodyIs(t *testing.T) {
	t.Parallel()
	database, err := sqlite.Open(t.Context(), testkit.SQLite(t, sqlite.Open))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = database.Close() })
	for _, login := range []string{"Alice", "bob"} {
		if err := (access.Accounts{Store: database, Now: time.Now}).Create(t.Context(), login, access.Operator, ""); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := database.LinkMachineUser(t.Context(), "root", "alice"); err != nil {
		t.Fatal(err)
	}
	people := access.People{Store: database}
	ofToken := func(token store.Token) func() (access.Person, error) {
		return func() (access.Person, error) { return people.OfToken(t.Context(), token) }
	}
	here := func(name string) func() (access.Person, error) {
		return func() (access.Person, error) { return people.Here(t.Context(), name) }
	}
	for name, c := range map[string]struct {
		find func() (access.Person, error)
		want access.Person
	}{
		"a token for her":            {ofToken(store.Token{Name: "laptop", Person: "Alice"}), access.Person{Login: "Alice", Account: true}},
		"a token of her name":        {ofToken(store.Token{Name: "alice"}), access.Person{Login: "Alice", Account: true}},
		"a token of another name":    {ofToken(store.Token{Name: "ci"}), access.Person{Login: "ci"}},
		"a token without a name":     {ofToken(store.Token{}), access.Person{}},
		"an agent of her name":       {ofToken(store.Token{Name: "alice", Role: "agent"}), access.Person{Login: "alice"}},
		"a machine's user":           {here("root"), access.Person{Login: "Alice", Account: true}},
		"a machine's user by name":   {here("BOB"), access.Person{Login: "bob", Account: true}},
		"a machine's user of no one": {here("daemon"), access.Person{Login: "daemon"}},
		"no machine's user":          {here(""), access.Person{}},
	} {
		if got, err := c.find(); err != nil || got != c.want {
			t.Errorf("%s is %+v, %v, want %+v", name, got, err, c.want)
		}
	}
}

// A token that acts for a person cannot do more than the person.
func TestTokenForAPerson(t *testing.T) {
	t.Parallel()
	operator := store.User{Login: "alice", Role: "operator"}
	for role, want := range map[access.Role]task.Code{
		access.Viewer: "", access.Operator: "", access.Admin: task.Invalid, access.Agent: task.Usage,
	} {
		if err := access.CheckTokenFor(role, operator); task.CodeOf(err) != want {
			t.Errorf("a token with the role %s: %v, want %q", role, err, want)
		}
	}
}

// Whoever chooses a name at a provider is not the user of the machine with that name.
func TestMachineUserOfTheNameOfAStranger(t *testing.T) {
	t.Parallel()
	accounts, _ := newAccounts(t)
	if _, _, err := accounts.Admit(t.Context(), access.Identity{ID: "id 1", Login: "root", Role: access.Viewer}); err != nil {
		t.Fatal(err)
	}
	database, is := accounts.Store.(store.Store)
	if !is {
		t.Fatal("the database of the accounts is not a whole one")
	}
	people := access.People{Store: database}
	if who, err := people.Here(t.Context(), "root"); task.CodeOf(err) != task.Conflict {
		t.Errorf("root is %+v, %v", who, err)
	}
	if _, err := database.LinkMachineUser(t.Context(), "root", "root"); err != nil {
		t.Fatal(err)
	}
	if who, err := people.Here(t.Context(), "root"); err != nil || !who.Account {
		t.Errorf("after a link root is %+v, %v", who, err)
	}
}

// Nobody gets what belongs to a name by choosing it at a provider, unless an admin has said
// so, or the person was here before.
func TestNameThatThingsBelongTo(t *testing.T) {
	t.Parallel()
	accounts, _ := newAccounts(t)
	database, is := accounts.Store.(store.Store)
	if !is {
		t.Fatal("the database of the accounts is not a whole one")
	}
	admit := func(id, login string) error {
		_, _, err := accounts.Admit(t.Context(), access.Identity{ID: id, Login: login, Role: access.Viewer})
		return err
	}
	tokens := access.Tokens{Store: database, Now: time.Now}
	if _, err := tokens.Create(t.Context(), access.Operator, "ci"); err != nil {
		t.Fatal(err)
	}
	review, err := database.AddReview(t.Context(), store.Review{Owner: "root"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := database.AddThread(t.Context(), store.Thread{ReviewID: review.ID, Owner: "deploy"}); err != nil {
		t.Fatal(err)
	}
	if _, err := database.AddQuestion(t.Context(), store.Question{Owner: "teacher", Text: "What is a contract?"}); err != nil {
		t.Fatal(err)
	}
	// Those on the board have written things there, and may have admin access.
	for _, login := range []string{"machine", "bob-example.com", "gone"} {
		if _, err := database.AddBoardUser(t.Context(), store.BoardUser{Login: login, Access: store.BoardAdmin}); err != nil {
			t.Fatal(err)
		}
	}
	if err := database.RemoveBoardUser(t.Context(), "gone", time.Now()); err != nil {
		t.Fatal(err)
	}
	for _, login := range []string{"ci", "ROOT", "Deploy", "Teacher", "Machine", "bob@example.com", "gone"} {
		if err := admit("id of "+login, login); task.CodeOf(err) != task.Conflict {
			t.Errorf("%s: %v", login, err)
		}
	}
	if err := admit("id 1", "alice"); err != nil {
		t.Fatal(err)
	}
	// Two accounts are not one person on the board, which neither has looked at yet.
	if err := admit("id 5", "carol@corp"); err != nil {
		t.Fatal(err)
	}
	if err := admit("id 6", "Carol-corp"); task.CodeOf(err) != task.Conflict {
		t.Errorf("who would be carol@corp on the board: %v", err)
	}
	for _, login := range []string{"root", "machine"} {
		if err := database.ExpectUser(t.Context(), login); err != nil {
			t.Fatal(err)
		}
	}
	if err := admit("id 4", "machine"); err != nil {
		t.Errorf("the one of the board is expected: %v", err)
	}
	if err := admit("id 2", "root"); err != nil {
		t.Errorf("root is expected: %v", err)
	}
	if err := database.RemoveUser(t.Context(), "root"); err != nil {
		t.Fatal(err)
	}
	if err := admit("id 3", "root"); task.CodeOf(err) != task.Conflict {
		t.Errorf("somebody else comes as root: %v", err)
	}
	if err := admit("id 2", "root"); err != nil {
		t.Errorf("root comes again: %v", err)
	}
}
