package github

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	gh "github.com/google/go-github/v92/github"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

// permission is one of those that an App or a fine-grained token is given, and a request that shows
// whether it was.
//
// Such a request never changes anything. Where it is a write it lacks what GitHub cannot do without,
// for two reasons each: a reference without a place, to an object of zeros; an issue without a title,
// for a milestone that cannot be; a pull request without branches; a status of a commit of zeros; a
// webhook of a kind that there is not, without an address. GitHub looks at permissions first. Without a
// method there is no such request.
type permission struct {
	name   string // as on the page on which it is given
	write  bool
	of     func(*gh.InstallationPermissions) string
	method string
	path   []any
	query  string
	body   any
}

// noCommit is the hash of no object.
const noCommit = "0000000000000000000000000000000000000000"

// noMilestone is a number that no milestone has.
const noMilestone = 1<<31 - 1

type object = map[string]any

var (
	readContents = permission{
		name: "Contents", of: (*gh.InstallationPermissions).GetContents,
		method: http.MethodGet, path: []any{"branches"}, query: "?per_page=1",
	}
	writeContents = permission{
		name: "Contents", write: true, of: (*gh.InstallationPermissions).GetContents,
		method: http.MethodPost, path: []any{"git", "refs"}, body: object{"ref": "toryo", "sha": noCommit},
	}
	// Whether a token has it cannot be tried without a commit.
	writeWorkflows = permission{name: "Workflows", write: true, of: (*gh.InstallationPermissions).GetWorkflows}
	readIssues     = permission{
		name: "Issues", of: (*gh.InstallationPermissions).GetIssues,
		method: http.MethodGet, path: []any{"issues"}, query: "?per_page=1",
	}
	writeIssues = permission{
		name: "Issues", write: true, of: (*gh.InstallationPermissions).GetIssues,
		method: http.MethodPost, path: []any{"issues"}, body: object{"title": "", "milestone": noMilestone},
	}
	readPulls = permission{
		name: "Pull requests", of: (*gh.InstallationPermissions).GetPullRequests,
		method: http.MethodGet, path: []any{"pulls"}, query: "?per_page=1",
	}
	writePulls = permission{
		name: "Pull requests", write: true, of: (*gh.InstallationPermissions).GetPullRequests,
		method: http.MethodPost, path: []any{"pulls"}, body: object{"title": "", "head": "", "base": ""},
	}
	writeStatuses = permission{
		name: "Commit statuses", write: true, of: (*gh.InstallationPermissions).GetStatuses,
		method: http.MethodPost, path: []any{"statuses", noCommit}, body: object{"state": "error"},
	}
	readChecks = permission{
		name: "Checks", of: (*gh.InstallationPermissions).GetChecks,
		method: http.MethodGet, path: []any{"commits", noCommit, "check-runs"}, query: "?filter=latest&per_page=1",
	}
	readActions = permission{
		name: "Actions", of: (*gh.InstallationPermissions).GetActions,
		method: http.MethodGet, path: []any{"actions", "runs"}, query: "?per_page=1",
	}
	writeHooks = permission{
		name: "Webhooks", write: true, of: (*gh.InstallationPermissions).GetRepositoryHooks,
		method: http.MethodPost, path: []any{"hooks"}, body: object{"name": "toryo", "events": []string{"toryo"}},
	}
)

func (p permission) String() string {
	if p.write {
		return p.name + ": read and write"
	}
	return p.name + ": read"
}

// given reports whether an installation has it.
func (p permission) given(all *gh.InstallationPermissions) bool {
	level := p.of(all)
	return level == "write" || level == "admin" || !p.write && level == "read"
}

// role is what an account may do in a repository.
type role int

const (
	readRole role = iota
	triageRole
	writeRole
	adminRole
)

var roleNames = map[role]string{readRole: "Read", triageRole: "Triage", writeRole: "Write", adminRole: "Admin"}

func (r role) String() string { return "the role " + roleNames[r] }

// need is what gives a right.
type need struct {
	permissions []permission
	role        role
	// scopes of a classic token: one of them will do. public is for public repositories, where
	// none means that everybody may.
	scopes, public []string
}

// needs are what gives the rights within a repository. Comments on pull requests are those of issues,
// so that the permission for issues is enough. The scope write:repo_hook creates webhooks and does not
// delete them, so that it is not enough.
var needs = map[forge.Right]need{
	forge.ReadCode:      {[]permission{readContents}, readRole, []string{"repo"}, nil},
	forge.Push:          {[]permission{writeContents}, writeRole, []string{"repo"}, []string{"public_repo", "repo"}},
	forge.PushWorkflows: {[]permission{writeWorkflows}, writeRole, []string{"workflow"}, []string{"workflow"}},
	forge.ReadItems:     {[]permission{readIssues, readPulls}, readRole, []string{"repo"}, nil},
	forge.CommentOn:     {[]permission{writeIssues}, readRole, []string{"repo"}, []string{"public_repo", "repo"}},
	forge.LabelItems:    {[]permission{writeIssues}, triageRole, []string{"repo"}, []string{"public_repo", "repo"}},
	forge.OpenPulls:     {[]permission{writePulls}, writeRole, []string{"repo"}, []string{"public_repo", "repo"}},
	forge.SetStatuses:   {[]permission{writeStatuses}, writeRole, []string{"repo", "repo:status"}, []string{"public_repo", "repo", "repo:status"}},
	forge.ReadChecks:    {[]permission{readChecks, readActions}, readRole, []string{"repo"}, nil},
	forge.ManageHooks:   {[]permission{writeHooks}, adminRole, []string{"admin:repo_hook", "repo"}, []string{"admin:repo_hook", "public_repo", "repo"}},
}

// CheckRights says what we may do in a repository. Of an App GitHub tells what its installation was
// given, of a classic token its scopes; of a fine-grained token nothing, so that it is tried.
func (f *Forge) CheckRights(ctx context.Context, repository string) ([]forge.RightCheck, error) {
	at, err := placeOf(repository)
	if err != nil {
		return nil, err
	}
	self, scopes, err := f.checkSelf(ctx)
	if err != nil {
		return nil, err
	}
	found, _, err := f.client.Repositories.Get(ctx, at.owner, at.name)
	if err == nil && !sameRepository(found.GetFullName(), repository) {
		err = errNonsense
	}
	if err != nil {
		err = callError(err, "read the repository %s", repository)
		if task.CodeOf(err) == task.NotFound {
			err = task.Wrap(task.NotFound, err, "GitHub shows us no repository "+repository).WithHint("%s", f.howToSee(scopes))
		}
		return nil, err
	}
	look := &rightsLook{forge: f, at: at, repository: found, scopes: scopes, tried: map[string]trialResult{}}
	checks := []forge.RightCheck{self}
	for _, needed := range forge.NeededRights[1:] {
		check, err := look.check(ctx, needed.Right)
		if err != nil {
			return nil, err
		}
		checks = append(checks, check)
	}
	return checks, nil
}

// howToSee is what to do about a repository that is not shown to us.
func (f *Forge) howToSee(scopes []string) string {
	switch {
	case f.app != nil:
		return "check the name, and that the App is installed on the repository"
	case scopes != nil:
		return "check the name, give the account access to the repository, and the token the scope repo if it is private"
	default:
		return "check the name, give the account access to the repository, and the token too: a fine-grained token is for the repositories of one owner that were chosen for it"
	}
}

// checkSelf checks whether GitHub tells us who we are. It returns the scopes of a classic token; of
// anything else nil.
func (f *Forge) checkSelf(ctx context.Context) (check forge.RightCheck, scopes []string, err error) {
	check = forge.RightCheck{Right: forge.ReadSelf, State: forge.RightGiven, Given: "a token of an account"}
	if f.app != nil {
		check.Given = "the private key of the App"
		if err := f.app.renew(ctx); err != nil {
			return check, nil, err
		}
		_, err := f.Self(ctx)
		return check, nil, err
	}
	_, answer, err := f.client.Users.Get(ctx, "")
	if status(err) == http.StatusForbidden && !forge.Temporary(callError(err, "find out who we are on GitHub")) {
		check.State, check.Found = forge.RightMissing, reasonOf(err)
		return check, f.scopesOf(answer), nil
	}
	if err != nil {
		return check, nil, callError(err, "find out who we are on GitHub")
	}
	return check, f.scopesOf(answer), nil
}

// scopesOf are the scopes of a classic token. GitHub lists them with every answer; with those to
// other tokens there is no list, or it is empty: then it is nil.
func (f *Forge) scopesOf(answer *gh.Response) []string {
	const header = "X-Oauth-Scopes"
	if answer == nil || len(answer.Header[header]) == 0 {
		return nil
	}
	scopes := []string{}
	for scope := range strings.SplitSeq(answer.Header.Get(header), ",") {
		if scope = strings.TrimSpace(scope); scope != "" {
			scopes = append(scopes, scope)
		}
	}
	if len(scopes) == 0 && !f.hasToken("ghp_") && !f.hasToken("gho_") {
		return nil
	}
	return scopes
}

// hasToken reports whether our token is of the kind that begins so.
func (f *Forge) hasToken(kind string) bool {
	token, fixed := f.tokens.(fixedToken)
	return fixed && strings.HasPrefix(string(token), kind)
}

// reasonOf is what GitHub said in a refusal.
func reasonOf(err error) string {
	if refused, ok := errors.AsType[*gh.ErrorResponse](err); ok && refused.Message != "" {
		return forge.ShortReason(refused.Message)
	}
	return forge.ShortReason(err.Error())
}

// rightsLook is one look at what we may do in a repository.
type rightsLook struct {
	forge      *Forge
	at         place
	repository *gh.Repository
	scopes     []string // of a classic token, or nil
	tried      map[string]trialResult
}

type trialResult struct {
	state forge.RightState
	found string
}

// check says whether we have a right. Where issues are switched off, as in forks, nobody has one to
// them.
func (l *rightsLook) check(ctx context.Context, right forge.Right) (forge.RightCheck, error) {
	check, err := l.checkAccount(ctx, right)
	issues := l.repository.HasIssues
	if err == nil && check.State != forge.RightMissing && issues != nil && !*issues && (right == forge.ReadItems || right == forge.CommentOn) {
		check.State, check.Given, check.Found = forge.RightMissing, "issues that are switched on in the repository", "issues are switched off"
	}
	return check, err
}

// checkAccount says whether our account and token have a right.
func (l *rightsLook) checkAccount(ctx context.Context, right forge.Right) (forge.RightCheck, error) {
	need := needs[right]
	check := forge.RightCheck{Right: right, State: forge.RightMissing}
	if l.repository.GetArchived() && need.writes() {
		check.Given, check.Found = "a repository that is not archived", "the repository is archived"
		return check, nil
	}
	if has, known := l.role(); known && has < need.role {
		check.Given, check.Found = need.role.String()+" in the repository", "the account has "+has.String()
		return check, nil
	}
	switch {
	case l.forge.app != nil && l.forge.app.permissions.Load() != nil:
		return need.ofApp(check, l.forge.app.permissions.Load()), nil
	case l.scopes != nil:
		return need.ofScopes(check, l.scopes, !l.repository.GetPrivate()), nil
	default:
		return l.try(ctx, need, check)
	}
}

func (n need) writes() bool {
	return slices.ContainsFunc(n.permissions, func(p permission) bool { return p.write })
}

// role is what our account may do in the repository. Of an App it says nothing.
func (l *rightsLook) role() (has role, known bool) {
	may := l.repository.Permissions
	switch {
	case l.forge.app != nil || may == nil:
		return readRole, false
	case may.GetAdmin():
		return adminRole, true
	case may.GetMaintain(), may.GetPush():
		return writeRole, true
	case may.GetTriage():
		return triageRole, true
	default:
		return readRole, true
	}
}

// with adds to what gives a right the role that it takes besides.
func (n need) with(given string) string {
	if n.role == readRole {
		return given
	}
	return given + ", and " + n.role.String() + " in the repository"
}

func (n need) ofApp(check forge.RightCheck, all *gh.InstallationPermissions) forge.RightCheck {
	var missing []permission
	for _, one := range n.permissions {
		if !one.given(all) {
			missing = append(missing, one)
		}
	}
	if len(missing) == 0 {
		check.State, check.Given = forge.RightGiven, listed(n.permissions)
		return check
	}
	check.Given, check.Found = listed(missing), "the installation of the App lacks it"
	return check
}

func (n need) ofScopes(check forge.RightCheck, has []string, public bool) forge.RightCheck {
	enough := n.scopes
	if public {
		enough = n.public
	}
	switch {
	case len(enough) == 0:
		check.State, check.Given = forge.RightGiven, "a public repository"
	case slices.ContainsFunc(enough, func(scope string) bool { return slices.Contains(has, scope) }):
		check.State, check.Given = forge.RightGiven, n.with("the scope "+strings.Join(enough, " or "))
	default:
		check.Given, check.Found = "the scope "+strings.Join(enough, " or "), forge.ShortReason("the token has the scopes "+strings.Join(has, ", "))
		if len(has) == 0 {
			check.Found = "the token has no scopes"
		}
	}
	return check
}

func listed(permissions []permission) string {
	var names []string
	for _, one := range permissions {
		names = append(names, one.String())
	}
	return strings.Join(names, ", ")
}

// try tries each permission. One that is missing counts for more than one that is not known.
func (l *rightsLook) try(ctx context.Context, need need, check forge.RightCheck) (forge.RightCheck, error) {
	check.State, check.Given = forge.RightGiven, need.with(listed(need.permissions))
	for _, one := range need.permissions {
		result, err := l.tryOne(ctx, one)
		if err != nil {
			return forge.RightCheck{}, err
		}
		switch {
		case result.state == forge.RightMissing && check.State == forge.RightMissing:
			check.Given += ", " + l.missing(one)
		case result.state == forge.RightMissing:
			check.State, check.Given, check.Found = forge.RightMissing, l.missing(one), result.found
		case result.state == forge.RightUnknown && check.State == forge.RightGiven:
			check.State, check.Found = forge.RightUnknown, result.found
		}
	}
	return check, nil
}

// missing is a permission that is to be given. GitHub documents that of checks for fine-grained tokens
// and does not offer it.
func (l *rightsLook) missing(one permission) string {
	if one.name == readChecks.name && l.forge.hasToken("github_pat_") {
		return one.String() + ", which only an App can be given (a classic token needs none)"
	}
	return one.String()
}

// tryOne tries one permission, once.
func (l *rightsLook) tryOne(ctx context.Context, one permission) (trialResult, error) {
	if known, tried := l.tried[one.String()]; tried {
		return known, nil
	}
	if one.method == "" {
		return trialResult{forge.RightUnknown, "it cannot be tried without a change"}, nil
	}
	err := l.forge.do(ctx, one.method, l.at.path(one.path...)+one.query, one.body, nil)
	result := trialResult{state: forge.RightUnknown}
	switch code := status(err); {
	case err == nil && one.method == http.MethodGet:
		result.state = forge.RightGiven
	case err == nil:
		result.found = "GitHub took a request that is not valid"
	case code == http.StatusUnprocessableEntity, code == http.StatusConflict, code == http.StatusBadRequest: // it came to the body
		result.state = forge.RightGiven
	case code == http.StatusGone: // issues are switched off, which says nothing of the token
		result.found = reasonOf(err)
	default:
		coded := callError(err, "find out what we may do in %s", l.repository.GetFullName())
		switch task.CodeOf(coded) {
		case task.Forbidden, task.NotFound:
			result = trialResult{forge.RightMissing, reasonOf(err)}
		case task.Unauthorized, task.Unavailable:
			return result, coded
		default:
			result.found = reasonOf(err)
		}
	}
	l.tried[one.String()] = result
	return result, nil
}
