package cli

import (
	"context"
	"fmt"
	"io"
	"os/user"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// MachineUser is the name of whoever runs the program; empty if there is none.
func MachineUser() string {
	here, err := user.Current()
	if err != nil {
		return ""
	}
	return here.Username
}

// WhoseFlag is what the flag --as says of commands on what belongs to somebody.
const WhoseFlag = "whose reviews they are (`LOGIN`, default: the account of this machine's user)"

// peopleStore is what it takes of the database to say for whom a command works.
type peopleStore interface {
	access.PeopleStore
	ListUsers(ctx context.Context) ([]store.User, error)
}

// Person is for whom a command works: the person who is named, or else the one that the
// user of this machine is. Where others have accounts, whoever has none is told so: nobody
// sees on the pages what belongs to such a name.
func Person(ctx context.Context, notes io.Writer, database peopleStore, named string) (string, error) {
	people := access.People{Store: database}
	if named != "" {
		person, err := people.Named(ctx, named)
		return person.Login, err
	}
	machineUser := MachineUser()
	if machineUser == "" {
		return "", task.Errorf(task.Usage, "the user of this machine has no name").WithHint("say who you are with --as")
	}
	person, err := people.Here(ctx, machineUser)
	if err != nil || person.Account {
		return person.Login, err
	}
	users, err := database.ListUsers(ctx)
	if len(users) > 0 {
		_, _ = fmt.Fprintf(notes, "%s has no account, so this does not appear on the pages; link one with toryo user link LOGIN\n", machineUser) // the command goes on all the same
	}
	return person.Login, err
}
