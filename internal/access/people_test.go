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
