package gitlab

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	gl "gitlab.com/gitlab-org/api/client-go/v2"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

// need is what gives a right: one of the scopes, and a role in the project.
type need struct {
	scopes []string
	level  gl.AccessLevelValue
	// public says that in a project that is not private everybody may.
	public bool
	writes bool
}

// needs are what gives the rights. With the scope api git may fetch and push as well. Guests of a
// private project see no merge requests, and no code. To label issues the role Planner would do, but
// merge requests are labelled by Developers only.
var needs = map[forge.Right]need{
	forge.ReadSelf:    {scopes: []string{"api", "read_api", "read_user"}},
	forge.ReadCode:    {scopes: []string{"api", "read_repository", "write_repository"}, level: gl.ReporterPermissions, public: true},
	forge.Push:        {scopes: []string{"api", "write_repository"}, level: gl.DeveloperPermissions, writes: true},
	forge.ReadItems:   {scopes: []string{"api", "read_api"}, level: gl.PlannerPermissions, public: true},
	forge.CommentOn:   {scopes: []string{"api"}, level: gl.PlannerPermissions, public: true, writes: true},
	forge.LabelItems:  {scopes: []string{"api"}, level: gl.DeveloperPermissions, writes: true},
	forge.OpenPulls:   {scopes: []string{"api"}, level: gl.DeveloperPermissions, writes: true},
	forge.SetStatuses: {scopes: []string{"api"}, level: gl.DeveloperPermissions, writes: true},
	forge.ReadChecks:  {scopes: []string{"api", "read_api"}, level: gl.ReporterPermissions, public: true},
	forge.ManageHooks: {scopes: []string{"api"}, level: gl.MaintainerPermissions, writes: true},
}

var levelNames = map[gl.AccessLevelValue]string{
	gl.GuestPermissions: "Guest", gl.PlannerPermissions: "Planner", gl.ReporterPermissions: "Reporter",
	gl.DeveloperPermissions: "Developer", gl.MaintainerPermissions: "Maintainer", gl.OwnerPermissions: "Owner",
}

// roleName is the name of a level, or of the highest below it: there are more of them.
func roleName(level gl.AccessLevelValue) string {
	for ; level > gl.NoPermissions; level-- {
		if name := levelNames[level]; name != "" {
			return name
		}
	}
	return ""
}

// standing is what GitLab tells of our token and of our account in a project.
type standing struct {
	scopes  []string    // nil if it does not tell
	user    *gl.User    // nil if the token does not read it
	refused string      // what it said then
	project *gl.Project // nil if the token does not read it
	known   bool        // whether the level is
	level   gl.AccessLevelValue
	// admin says that the account is an administrator, who needs no role. With admin mode, which
	// GitLab does not tell of, that is so only for tokens with the scope admin_mode.
	admin bool
}

// CheckRights says what we may do in a project. GitLab tells the scopes of the token and the role of
// the account, so that nothing has to be tried.
func (f *Forge) CheckRights(ctx context.Context, repository string) ([]forge.RightCheck, error) {
	if err := checkRepository(repository); err != nil {
		return nil, err
	}
	has, err := f.standing(ctx, repository)
	if err != nil {
		return nil, err
	}
	var checks []forge.RightCheck
	for _, needed := range forge.NeededRights {
		if need, known := needs[needed.Right]; known {
			checks = append(checks, has.check(needed.Right, need))
		}
	}
	return checks, nil
}

func (f *Forge) standing(ctx context.Context, repository string) (has standing, err error) {
	if has.scopes, err = f.scopes(ctx); err != nil {
		return standing{}, err
	}
	if has.scopes != nil && !slices.Contains(has.scopes, "api") && !slices.Contains(has.scopes, "read_api") {
		return has, nil // nothing of the project can be read
	}
	if err := f.readUser(ctx, &has); err != nil {
		return standing{}, err
	}
	has.project, err = f.project(ctx, repository)
	if has.scopes == nil && task.CodeOf(err) == task.Forbidden {
		return has, nil // a fine-grained token: what it may do is not known
	}
	if task.CodeOf(err) == task.NotFound {
		return standing{}, task.Wrap(task.NotFound, err, "GitLab shows us no project "+repository).
			WithHint("check the path, and make the account a member of the project or of a group above it")
	}
	if err != nil {
		return standing{}, err
	}
	err = f.readLevel(ctx, repository, &has)
	return has, err
}

// ownToken is what we read of our token.
type ownToken struct {
	Scopes []string `json:"scopes"`
	// Of a fine-grained token, on newer servers.
	Granular       bool              `json:"granular"`
	GranularScopes []json.RawMessage `json:"granular_scopes"`
}

// fineGrained reports whether the token has permissions in place of scopes. Its one scope says nothing,
// and older servers do not tell of permissions.
func (t ownToken) fineGrained() bool {
	return t.Granular || len(t.GranularScopes) > 0 || len(t.Scopes) == 0 || slices.Contains(t.Scopes, "granular")
}

// scopes returns the scopes of the token, or nil if GitLab does not tell. For a token that has expired
// or was revoked it says so.
func (f *Forge) scopes(ctx context.Context) ([]string, error) {
	var token ownToken
	err := f.do(ctx, http.MethodGet, "personal_access_tokens/self", nil, &token)
	switch code := status(err); {
	case code == http.StatusUnauthorized && hasReason(err, "expired"):
		return nil, task.Wrap(task.Unauthorized, callError(err, "find out what the token may do"), "the token for GitLab has expired").
			WithHint("make a new token with the scope api")
	case code == http.StatusUnauthorized && hasReason(err, "revoked"):
		return nil, task.Wrap(task.Unauthorized, callError(err, "find out what the token may do"), "the token for GitLab was revoked").
			WithHint("make a new token with the scope api")
	case code == http.StatusNotFound, code == http.StatusBadRequest, code == http.StatusForbidden: // an old server, or another kind of token
		return nil, nil
	case err != nil:
		return nil, callError(err, "find out what the token may do on GitLab")
	case token.fineGrained():
		return nil, nil
	}
	return token.Scopes, nil
}

// readUser fills in who we are. A fine-grained token may lack the permission for that.
func (f *Forge) readUser(ctx context.Context, has *standing) error {
	user, _, err := f.client.Users.CurrentUser(in(ctx))
	if err == nil && (user == nil || user.ID == 0) {
		err = errNonsense
	}
	if err == nil {
		has.user = user
		return nil
	}
	coded := callError(err, "find out who we are on GitLab")
	if task.CodeOf(coded) == task.Forbidden {
		has.refused = reasonOf(err)
		return nil
	}
	return coded
}

// reasonOf is what GitLab said in a refusal.
func reasonOf(err error) string {
	if refused, ok := errors.AsType[*gl.ErrorResponse](err); ok && refused.Message != "" {
		return forge.ShortReason(refused.Message)
	}
	return forge.ShortReason(err.Error())
}

// readLevel fills in our role in a project by all ways, as far as it is told.
func (f *Forge) readLevel(ctx context.Context, repository string, has *standing) error {
	user := has.user
	if user == nil {
		return nil
	}
	if user.IsAdmin && slices.Contains(has.scopes, "admin_mode") {
		has.level, has.known = gl.OwnerPermissions, true
		return nil
	}
	has.admin = user.IsAdmin
	member, _, err := f.client.ProjectMembers.GetInheritedProjectMember(repository, user.ID, in(ctx))
	if code := status(err); code == http.StatusNotFound || code == http.StatusForbidden {
		has.known = code == http.StatusNotFound // no member, or we may not know
		if has.admin && has.known && has.project.Visibility == gl.PrivateVisibility {
			has.level, has.admin = gl.OwnerPermissions, false // it would not be shown to us otherwise
		}
		return nil
	}
	if err == nil && (member == nil || member.ID != user.ID) {
		err = errNonsense
	}
	if err != nil {
		return callError(err, "read what we may do in %s", repository)
	}
	has.level, has.known = member.AccessLevel, true
	return nil
}

// check says whether we have a right.
func (s standing) check(right forge.Right, need need) forge.RightCheck {
	check := forge.RightCheck{Right: right, State: forge.RightMissing}
	if check.Given, check.Found = s.lacks(right, need); check.Given != "" {
		return check
	}
	check.State, check.Given = forge.RightGiven, need.scope()
	if s.needsRole(need) {
		check.Given += ", and " + need.role()
	}
	// A token that reads the project may still be one that only reads the interface.
	unsure := s.scopes == nil && right != forge.ReadSelf && (need.writes || right == forge.ReadCode || s.project == nil)
	switch {
	case unsure:
		check.State, check.Found = forge.RightUnknown, "GitLab does not tell what the token may do"
	case s.admin && s.level < need.level && s.needsRole(need):
		check.State, check.Found = forge.RightUnknown, "the account is an administrator, which may not count without the scope admin_mode"
	case !s.known && s.needsRole(need):
		check.State, check.Found = forge.RightUnknown, "GitLab does not tell the role of the account"
	}
	return check
}

// lacks returns what is missing for a right, and what GitLab tells of that.
func (s standing) lacks(right forge.Right, need need) (missing, found string) {
	if s.scopes != nil && !slices.ContainsFunc(need.scopes, func(scope string) bool { return slices.Contains(s.scopes, scope) }) {
		return need.scope(), "the token has the scopes " + forge.ShortReason(strings.Join(s.scopes, ", "))
	}
	if right == forge.ReadSelf && s.refused != "" {
		return need.scope() + ", or of a fine-grained token the permission to read the user", s.refused
	}
	if missing, found := s.switchedOff(right, need); missing != "" {
		return missing, found
	}
	if !s.known || s.admin || !s.needsRole(need) || s.level >= need.level {
		return "", ""
	}
	if name := roleName(s.level); name != "" {
		return need.role(), "the account has the role " + name
	}
	return need.role(), "the account is no member of the project"
}

// switchedOff returns what nobody may do in the project, as lacks does.
func (s standing) switchedOff(right forge.Right, need need) (missing, found string) {
	if s.project == nil {
		return "", ""
	}
	switch {
	case need.writes && s.project.Archived:
		return "a project that is not archived", "the project is archived"
	case right == forge.OpenPulls && s.project.MergeRequestsAccessLevel == gl.DisabledAccessControl:
		return "merge requests that are switched on in the project", "merge requests are switched off"
	case (right == forge.ReadItems || right == forge.CommentOn) && s.project.IssuesAccessLevel == gl.DisabledAccessControl:
		return "issues that are switched on in the project", "issues are switched off"
	}
	return "", ""
}

// needsRole reports whether a role is needed for a right.
func (s standing) needsRole(need need) bool {
	open := s.project != nil && s.project.Visibility != gl.PrivateVisibility
	return need.level > gl.NoPermissions && (!need.public || !open)
}

func (n need) scope() string { return "the scope " + strings.Join(n.scopes, " or ") }

func (n need) role() string { return "the role " + roleName(n.level) + " in the project" }
