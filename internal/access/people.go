package access

import (
	"cmp"
	"context"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// PeopleStore is what it takes of the database to find out who somebody is.
type PeopleStore interface {
	User(ctx context.Context, login string) (store.User, error)
	PersonHere(ctx context.Context, name string) (store.User, error)
}

// People finds out who somebody is. A person is an account, whichever way the person
// comes: signed in to the pages, with a token of the API, or as a user of the machine on
// which a command runs. What belongs to a person belongs to the login of the account, as
// the account has it.
type People struct {
	Store PeopleStore
}

// Person is who somebody is.
type Person struct {
	Login   string
	Account bool // false means that nobody can sign in with the login
}

// Named is the person with a login. Without an account it is the name as it is given.
func (p People) Named(ctx context.Context, login string) (Person, error) {
	if login == "" {
		return Person{}, nil
	}
	user, found, err := store.Optional(p.Store.User(ctx, login))
	if err != nil || !found {
		return Person{Login: login}, err
	}
	return Person{user.Login, true}, nil
}

// OfToken is the person for whom a token acts. One that was made for nobody acts for its
// name, and so does that of an agent, which is no person.
func (p People) OfToken(ctx context.Context, token store.Token) (Person, error) {
	if Role(token.Role) == Agent {
		return Person{Login: token.Name}, nil
	}
	return p.Named(ctx, cmp.Or(token.Person, token.Name))
}

// Here is the person that a user of this machine is: the one that the user is linked
// with, or else the one with a login of the same name. Conflict if that one has come from a
// provider: whoever chooses a name there is not the machine's user for that.
func (p People) Here(ctx context.Context, machineUser string) (Person, error) {
	linked, found, err := store.Optional(p.Store.PersonHere(ctx, machineUser))
	if err != nil || found {
		return Person{linked.Login, found}, err
	}
	if machineUser == "" {
		return Person{}, nil
	}
	user, found, err := store.Optional(p.Store.User(ctx, machineUser))
	switch {
	case err != nil || !found:
		return Person{Login: machineUser}, err
	case user.Identity != "":
		return Person{}, task.Errorf(task.Conflict, "the account %q was made by signing in elsewhere, and need not be %s on this machine", user.Login, machineUser).
			WithHint("say who you are with toryo user link LOGIN")
	}
	return Person{user.Login, true}, nil
}

// CheckTokenFor refuses a token that could do more than the person for whom it acts.
func CheckTokenFor(role Role, person store.User) error {
	switch {
	case role == Agent:
		return task.Errorf(task.Usage, "an agent's token acts for no person").WithHint("leave the person away")
	case !Role(person.Role).Includes(role):
		return task.Errorf(task.Invalid, "%s has the role %s, and a token that acts for %s cannot have the role %s", person.Login, person.Role, person.Login, role).
			WithHint("give the token the role %s", person.Role)
	}
	return nil
}
