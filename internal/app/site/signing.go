package site

import (
	"cmp"
	"context"
	"os"
	"path/filepath"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/doctor"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/mirror"
	"github.com/toryo-dev/toryo/internal/signing"
	"github.com/toryo-dev/toryo/internal/task"
)

// signerOf makes the signer that the configuration names; nil if it names none. It has
// the folder for itself.
func signerOf(ctx context.Context, c config.Git, dir string) (signing.Signer, error) {
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
	signer, err := signerOf(ctx, c.Git, filepath.Join(c.DataDir, "signing"))
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

// SigningFindings says whether the key that commits are signed with can be used, if
// there is one.
func SigningFindings(ctx context.Context, c config.Git) []doctor.Finding {
	if c.SigningKey == "" {
		return nil
	}
	finding := doctor.Finding{Name: "signing", Status: doctor.OK, Found: c.SigningFormat + " key; commits are by " + c.Name + " <" + c.Email + ">"}
	dir, err := os.MkdirTemp("", "toryo-doctor-") // the server may be running
	if err == nil {
		defer func() { _ = os.RemoveAll(dir) }()
		_, err = signerOf(ctx, c, dir)
	}
	if err != nil {
		finding.Status, finding.Found = doctor.Missing, err.Error()
	}
	if coded, is := task.AsError(err); is {
		finding.Found, finding.Hint = coded.Message, coded.Hint
	}
	return []doctor.Finding{finding}
}
