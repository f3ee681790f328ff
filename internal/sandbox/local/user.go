package local

import (
	"os"

	"github.com/toryo-dev/toryo/internal/workdir"
)

// strangerID is a user and group that belongs to nobody. When the program itself
// runs as the superuser, what runs in a sandbox is this user.
const strangerID = 61000

// User is the user on the host that a sandbox's processes are, and whether files
// have to be given to it because it is not the one that runs this program.
func User() (id int, given bool) {
	if id := os.Getuid(); id != 0 {
		return id, false
	}
	return strangerID, true
}

// NewOwner is who has to own files that are made for a sandbox, or 0 when whoever
// runs this program does already.
func NewOwner() int {
	if id, given := User(); given {
		return id
	}
	return 0
}

// GiveToUser makes the sandbox's user the owner of a folder and everything in it, when
// the program runs as the superuser. Links are not followed.
func GiveToUser(dir string) error { return workdir.Own(dir, NewOwner()) }
