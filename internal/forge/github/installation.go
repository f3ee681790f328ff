package github

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	gh "github.com/google/go-github/v92/github"

	"github.com/toryo-dev/toryo/internal/task"
)

// installation is the number of the installation: the one that is configured, or that at the
// owner, which GitHub is asked for once. The caller holds the turn.
func (t *appTokens) installation(ctx context.Context) (int64, error) {
	if t.app.InstallationID > 0 {
		return t.app.InstallationID, nil
	}
	if t.found > 0 {
		return t.found, nil
	}
	made, err := t.installedAt(ctx, t.app.Owner)
	if err != nil {
		return 0, err
	}
	t.found = made.GetID()
	return t.found, nil
}

// installedAt asks GitHub for the installation at an organisation or, if there is none of that
// name, at a user.
func (t *appTokens) installedAt(ctx context.Context, owner string) (*gh.Installation, error) {
	const what = "find the installation of the GitHub App at %s"
	name := url.PathEscape(owner)
	made, _, err := t.client.Apps.GetOrganizationInstallation(ctx, name)
	if status(err) == http.StatusNotFound {
		made, _, err = t.client.Apps.GetUserInstallation(ctx, name)
	}
	if status(err) == http.StatusNotFound {
		return nil, t.notInstalled(ctx, owner)
	}
	if err == nil && made.GetID() < 1 {
		err = errNonsense
	}
	if err != nil {
		return nil, callError(err, what, owner)
	}
	return made, nil
}

// notInstalled is the error of an App that is not installed at the owner. It ends when somebody
// installs it.
func (t *appTokens) notInstalled(ctx context.Context, owner string) error {
	failed := task.Errorf(task.Unavailable, "the GitHub App %s is not installed at %s", t.app.ID, owner).
		WithHint("install the App at %s, on its page on GitHub, or set github.owner to where it is installed", owner)
	if app, _, err := t.client.Apps.Get(ctx, ""); err == nil && strings.HasPrefix(app.GetHTMLURL(), t.web+"/") {
		failed.Hint = "install the App at " + owner + ": " + strings.TrimSuffix(app.GetHTMLURL(), "/") + "/installations/new"
	}
	return failed
}
