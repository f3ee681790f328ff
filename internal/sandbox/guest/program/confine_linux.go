package main

import (
	"github.com/toryo-dev/toryo/internal/sandbox/guest"
	"github.com/toryo-dev/toryo/internal/sandbox/landlock"
)

func confinements() map[string]guest.Confinement {
	return map[string]guest.Confinement{landlock.Name: landlock.Confine}
}
