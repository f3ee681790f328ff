package gitlab

import (
	"context"
	"net/http"
	"net/url"

	gl "gitlab.com/gitlab-org/api/client-go/v2"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/lazyregexp"
)

var _ forge.Attachments = (*Forge)(nil)

// upload is the end of the path of a file that somebody put into a text. GitLab writes it without
// the project before it.
var upload = lazyregexp.New(`^(.*/)?uploads/([0-9a-f]{32})/([^/]+)$`)

// projectID is how newer versions name the project in the path.
var projectID = lazyregexp.New(`^-/project/[0-9]+/$`)

// Attachment implements [forge.Attachments].
func (f *Forge) Attachment(ctx context.Context, repository, address string, most int64) (forge.Attachment, error) {
	if err := checkRepository(repository); err != nil {
		return forge.Attachment{}, err
	}
	path, own := forge.OwnPath(f.base, address)
	parts := upload.FindStringSubmatch(path)
	if !own || parts == nil || parts[1] != "" && parts[1] != repository+"/" && parts[1] != repository+"/-/" && !projectID.MatchString(parts[1]) {
		return forge.Attachment{}, nil
	}
	where := f.base.String() + "api/v4/projects/" + gl.PathEscape(repository) + "/uploads/" + parts[2] + "/" + url.PathEscape(parts[3])
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, where, http.NoBody)
	if err != nil {
		return forge.Attachment{}, callError(err, "read a file of a text in %s", repository)
	}
	request.Header.Set("Private-Token", f.token)
	request.Header.Set("User-Agent", "toryo")
	return forge.ReadAttachment(f.files, request, most)
}
