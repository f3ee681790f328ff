package gitea

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/lazyregexp"
)

var _ forge.Attachments = (*Forge)(nil)

// attachment is the path of a file that somebody put into a text, with the repository or without.
var attachment = lazyregexp.New(`^(?:([^/]+/[^/]+)/)?attachments/([0-9A-Fa-f-]{36})$`)

// Attachment implements [forge.Attachments].
func (f *Forge) Attachment(ctx context.Context, repository, address string, most int64) (forge.Attachment, error) {
	site, err := url.Parse(f.url)
	if err != nil {
		return forge.Attachment{}, callError("read a file of a text", nil, err)
	}
	path, own := forge.OwnPath(site, address)
	parts := attachment.FindStringSubmatch(path)
	if !own || parts == nil || parts[1] != "" && !strings.EqualFold(parts[1], repository) {
		return forge.Attachment{}, nil
	}
	// With the repository in the path the server would give no file of another one, but it takes no
	// token there.
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, f.url+"/attachments/"+parts[2], http.NoBody)
	if err != nil {
		return forge.Attachment{}, callError("read a file of a text", nil, err)
	}
	request.Header.Set("Authorization", "token "+f.token)
	request.Header.Set("User-Agent", "toryo")
	return forge.ReadAttachment(f.http, request, most)
}
