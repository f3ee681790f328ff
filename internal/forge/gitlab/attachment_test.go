package gitlab_test

import (
	"net/http"
	"testing"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/forgetest"
	"github.com/toryo-dev/toryo/internal/forge/gitlab"
)

func TestAttachments(t *testing.T) {
	t.Parallel()
	const (
		upload = "/uploads/0123456789abcdef0123456789abcdef/a%20b.png"
		asked  = "/api/v4/projects/owner%2Fname" + upload
	)
	forgetest.Attachments{
		Connect: func(site string, client *http.Client) (forge.Attachments, error) {
			return gitlab.New(gitlab.Options{URL: site, Token: "t0ken", HTTP: client})
		},
		Header: "Private-Token", Value: "t0ken",
		Own: map[string]string{
			upload: asked, "SITE/owner/name" + upload: asked, "/owner/name" + upload: asked, "SITE/owner/name/-" + upload: asked,
			"/-/project/7" + upload: asked, // the project's own, whatever the number is
		},
		Others: []string{"SITE/other/name" + upload, "/other/name" + upload, "SITE/owner/name/-/raw/main/a.png", "/uploads/0123456789abcdef0123456789abcdef/a/b.png", "/uploads/short/a.png"},
		Path:   upload,
	}.Run(t)
}
