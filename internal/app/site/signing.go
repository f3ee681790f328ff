package site

import (
	"cmp"
	"context"
	"path/filepath"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/mirror"
	"github.com/toryo-dev/toryo/internal/signing"
	"github.com/toryo-dev/toryo/internal/task"
)

// SignerOf makes the signer that the configuration names; nil if it names none. It has
// the folder for itself.
func SignerOf(ctx context.Context, c config.Git, dir string) (signing.Signer, error) {
	key := []byte(c.SigningKey.Reveal())
	switch {
	case len(key) == 0:
		return nil, nil
	case c.SigningFormat == "openpgp":
		return signing.OpenPGP(ctx, dir, key)
	default:
		return signing.SSH(key)
	}
}

// identityOf is who published commits are by.
func identityOf(ctx context.Context, c config.Config) (mirror.Identity, error) {
	identity := mirror.Identity{Name: c.Git.Name, Email: cmp.Or(c.Git.Email, "toryo@localhost")}
	signer, err := SignerOf(ctx, c.Git, filepath.Join(c.DataDir, "signing"))
	if signer != nil {
		identity.Sign = signer.Sign
	}
	return identity, err
}

// addressesOf are the forges that tell addresses of people, if people are to be named.
func addressesOf(c config.Git, forges map[task.Forge]forge.Forge) map[task.Forge]forge.Addresses {
	known := map[task.Forge]forge.Addresses{}
	if !c.CoAuthors {
		return known
	}
	for name, one := range forges {
		if tells, is := one.(forge.Addresses); is {
			known[name] = tells
		}
	}
	return known
}
