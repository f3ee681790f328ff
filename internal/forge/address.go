package forge

import "context"

// Address is what a commit of a person has as its author.
type Address struct{ Name, Email string }

// Addresses is implemented by forges that tell under which address a person's commits
// are shown as theirs.
type Addresses interface {
	// Address is the address that the forge shows to us: a public one, or one that
	// the forge made so that people need to show none. Without one, and for a login
	// that does not exist, it is empty.
	Address(ctx context.Context, login string) (Address, error)
}
