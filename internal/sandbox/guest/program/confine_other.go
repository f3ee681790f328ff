//go:build !linux

package main

import "github.com/toryo-dev/toryo/internal/sandbox/guest"

func confinements() map[string]guest.Confinement { return nil }
