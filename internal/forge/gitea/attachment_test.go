package gitea_test

import (
	"net/http"
	"testing"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/forgetest"
	"github.com/toryo-dev/toryo/internal/forge/gitea"
)

func TestAttachments(t *testing.T) {
	t.Parallel()
	const file = "/attachments/3f2b0c64-0f6e-4a6e-9a51-2f0f8a1f2c3d"
	forgetest.Attachments{
		Connect: func(site string, client *http.Client) (forge.Attachments, error) {
			return gitea.New(gitea.Options{URL: site, Token: "t0ken", HTTP: client})
		},
		Header: "Authorization", Value: "token t0ken",
		Own:    map[string]string{file: file, "SITE" + file: file, "SITE/owner/name" + file: file, "/Owner/Name" + file: file},
		Others: []string{"SITE/other/name" + file, "/other/name" + file, "SITE/owner/name/raw/a.png", "/attachments/short"},
		Path:   file,
	}.Run(t)
}
