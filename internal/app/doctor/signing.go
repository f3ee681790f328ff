package doctor

import (
	"context"
	"os"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/signing"
	"github.com/toryo-dev/toryo/internal/task"
)

// Signing says whether the key that commits are signed with can be used, if there is one.
// Open makes the signer, with a folder that it has for itself.
func Signing(ctx context.Context, c config.Git, open func(ctx context.Context, c config.Git, dir string) (signing.Signer, error)) []Finding {
	if c.SigningKey == "" {
		return nil
	}
	finding := Finding{Name: "signing", Status: OK, Found: c.SigningFormat + " key; commits are by " + c.Name + " <" + c.Email + ">"}
	dir, err := os.MkdirTemp("", "toryo-doctor-") // the server may be running
	if err == nil {
		defer func() { _ = os.RemoveAll(dir) }()
		_, err = open(ctx, c, dir)
	}
	if err != nil {
		finding.Status, finding.Found = Missing, err.Error()
	}
	if coded, is := task.AsError(err); is {
		finding.Found, finding.Hint = coded.Message, coded.Hint
	}
	return []Finding{finding}
}
