package github_test

import (
	"net/http"
	"testing"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/forgetest"
	"github.com/toryo-dev/toryo/internal/forge/github"
)

func TestAttachments(t *testing.T) {
	t.Parallel()
	const path = "/user-attachments/assets/3f2b0c64-0f6e-4a6e-9a51-2f0f8a1f2c3d"
	forgetest.Attachments{
		Connect: func(site string, client *http.Client) (forge.Attachments, error) {
			return github.New(github.Options{URL: site + "/api/v3/", Token: "t0ken", HTTP: client})
		},
		Header: "Authorization", Value: "Bearer t0ken",
		Own:    map[string]string{path: path, "SITE" + path: path},
		Others: []string{"SITE/owner/name/raw/main/a.png", "SITE/user-attachments/files/1/a.zip", "SITE" + path + "%2f..%2f..%2fx", "SITE/api/v3" + path},
		Path:   path,
	}.Run(t)
}
