package github

import (
	"context"
	"net/http"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/lazyregexp"
)

var _ forge.Attachments = (*Forge)(nil)

// userAttachment is the path of a file that somebody put into a text.
var userAttachment = lazyregexp.New(`^user-attachments/assets/[0-9A-Fa-f-]{1,64}$`)

// Attachment implements [forge.Attachments]. GitHub answers with a redirection to where the file is.
func (f *Forge) Attachment(ctx context.Context, _, address string, most int64) (forge.Attachment, error) {
	path, own := forge.OwnPath(f.web, address)
	if !own || !userAttachment.MatchString(path) {
		return forge.Attachment{}, nil
	}
	token, err := f.tokens.token(ctx)
	if err != nil {
		return forge.Attachment{}, callError(err, "read a file of a text")
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, f.web.JoinPath(path).String(), http.NoBody)
	if err != nil {
		return forge.Attachment{}, callError(err, "read a file of a text")
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("User-Agent", "toryo")
	return forge.ReadAttachment(f.plain, request, most)
}
