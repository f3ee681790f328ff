package local

import (
	"os"

	"github.com/toryo-dev/toryo/internal/workdir"
)

// strangerID is a user and group that belongs to nobody. When the program itself
// runs as the superuser, what runs in a sandbox is this user.
const strangerID = 61000

// noNumber is what a system without numbers of users and groups says.
const noNumber = -1

// User is the user on the host that a sandbox's processes are, and whether files
// have to be given to it because it is not the one that runs this program. On Windows
// users have no numbers, and an engine there lets every user of a container write to the
// folders that it shares.
func User() (id int, given bool) {
	switch id := os.Getuid(); id {
	case noNumber:
		return strangerID, false
	case 0:
		return strangerID, true
	default:
		return id, false
	}
}

// Group is the group of a sandbox's processes on the host.
func Group() int {
	user, given := User()
	if group := os.Getgid(); !given && group != noNumber {
		return group
	}
	return user
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
