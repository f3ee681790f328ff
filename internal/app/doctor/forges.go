package doctor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

// ForgeAccess is how forges are looked at.
type ForgeAccess struct {
	// Connect connects to a forge. Setup is nil for one that does not say how a repository
	// is prepared.
	Connect func(task.Forge) (forge.Reader, forge.Setup, error)
	// Scope tells the repositories that are worked on from the others.
	Scope func(of task.Forge, repository string) bool
	// Events are those of the forges whose webhooks are taken.
	Events map[task.Forge]forge.WebhookEvents
	// Received is what servers have received of the webhooks of a forge.
	Received func(context.Context, task.Forge) (Received, error)
	// URL is where forges reach the server.
	URL string
}

// looksAtOnce is how many repositories of a forge are looked at in parallel.
const looksAtOnce = 8

// Forges makes a survey for each configured forge: are the credentials there and accepted, which
// repositories are found with them, what may the bot do in these, and do they have our webhook?
// Without a configured forge the one survey says so.
func Forges(c config.Config, access ForgeAccess) []Survey {
	var surveys []Survey
	for _, name := range c.ConfiguredForges() {
		s := forgeSurvey{ForgeAccess: access, name: name, account: c.Account(name), where: wherein(c, name)}
		if name == task.GitHub && c.GitHub.DescribesApp() && c.GitHub.Token == "" {
			s.app = &app{c.GitHub.AppID, c.GitHub.AppInstallationID, c.GitHub.Owner}
		}
		surveys = append(surveys, s.run)
	}
	if len(surveys) > 0 {
		return surveys
	}
	return []Survey{func(context.Context) []Finding {
		return []Finding{{
			Name: "forge", Status: Warning, Found: "none is configured; there is only the built-in board",
			Hint:    "fill in github, gitlab or gitea in toryo.yaml and set its token, for example TORYO_GITHUB_TOKEN or GITHUB_TOKEN; this asks for all of it:",
			Command: setUp,
		}}
	}}
}

// place is what the configuration says about which repositories are worked on.
type place struct {
	key    string   // of the configuration
	owner  string   // "" on GitLab
	wanted []string // repositories that are named one by one
}

func wherein(c config.Config, name task.Forge) place {
	switch name {
	case task.GitHub:
		return place{key: "github.owner", owner: c.GitHub.Owner}
	case task.GitLab:
		return place{key: "gitlab.projects", wanted: c.GitLab.Projects}
	default:
		return place{key: "gitea.owner", owner: c.Gitea.Owner}
	}
}

// forgeSurvey looks at one forge.
type forgeSurvey struct {
	ForgeAccess

	name    task.Forge
	account config.Account
	where   place
	app     *app // the GitHub App that acts as the bot, and has a webhook of its own; nil for a token
	setup   forge.Setup
	arrived arrivals
}

func (s forgeSurvey) run(ctx context.Context) []Finding {
	if lacking := s.lacking(); lacking != nil {
		return []Finding{*lacking}
	}
	reader, setup, err := s.Connect(s.name)
	if err != nil {
		found, hint := explained(err, s.configured())
		return []Finding{{Name: string(s.name), Status: Missing, Found: found, Hint: hint}}
	}
	s.setup = setup
	who := s.whoWeAre(ctx, reader)
	if who.Status == Missing {
		return []Finding{who}
	}
	all, names := s.repositories(ctx, reader)
	findings := []Finding{who, all}
	if len(names) == 0 {
		return findings
	}
	checked := names[:min(len(names), maxRepositories)]
	findings = append(findings, s.each(ctx, " rights", checked, s.rights(reader))...)
	findings = append(findings, s.webhooks(ctx, checked)...)
	if len(names) > len(checked) {
		findings = append(findings, Finding{
			Name: string(s.name), Status: OK, Found: fmt.Sprintf("permissions and webhooks were checked in the first %d of %d repositories", len(checked), len(names)),
		})
	}
	return findings
}

// lacking is a finding about what the configuration does not have.
func (s forgeSurvey) lacking() *Finding {
	name := string(s.name)
	switch {
	case s.app != nil:
		return s.app.lacking(s.account)
	case !s.account.Credentials:
		return &Finding{
			Name: name, Status: Missing, Found: "configured, but without a token",
			Hint: fmt.Sprintf("set %s, or %s.token_file in toryo.yaml", strings.Join(s.account.Variables, " or "), name), Command: setUp,
		}
	case s.account.BotName == "":
		return &Finding{
			Name: name, Status: Missing, Found: "a token is set, but not whose it is",
			Hint: fmt.Sprintf("set %s.bot_name in toryo.yaml to the login of the bot", name), Command: setUp,
		}
	}
	return nil
}

// whoWeAre asks the forge whom it takes us for.
func (s forgeSurvey) whoWeAre(ctx context.Context, reader forge.Reader) Finding {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	name := string(s.name)
	login, err := reader.Self(ctx)
	switch {
	case err != nil:
		return s.refused(err)
	case login == "":
		return s.otherProgram()
	case !s.account.Is(login):
		finding := Finding{
			Name: name, Status: Warning, Found: fmt.Sprintf("the credentials are those of %s, but bot_name is %s", login, s.account.BotName),
			Hint: fmt.Sprintf("set %s.bot_name to %s, or use the token of %s", name, login, s.account.BotName), Command: setUp,
		}
		if s.app != nil {
			finding.Command = "" // toryo init asks for a token
			finding.Hint = "set github.app_name to " + strings.TrimSuffix(login, appSuffix)
		}
		return finding
	case s.app != nil && strings.HasSuffix(s.account.BotName, appSuffix):
		return s.app.cannotBeAssigned(s.account)
	}
	return Finding{Name: name, Status: OK, Found: fmt.Sprintf("%s knows us as %s", s.account.URL, login)}
}

// repositories says which repositories are found that are worked on, and names them.
func (s forgeSurvey) repositories(ctx context.Context, reader forge.Reader) (Finding, []string) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	finding := Finding{Name: string(s.name) + " repositories", Status: Missing}
	seen, err := reader.Repositories(ctx)
	if err != nil {
		finding.Found, finding.Hint = explained(err, s.needs())
		return finding, nil
	}
	var ours, others []string
	for _, repository := range seen {
		if s.Scope(s.name, repository.Name) {
			ours = append(ours, repository.Name)
		} else {
			others = append(others, repository.Name)
		}
	}
	slices.Sort(ours)
	slices.Sort(others)
	finding.Command = setUp
	switch missing := s.notFound(ours); {
	case s.where.owner == "" && len(s.where.wanted) == 0:
		finding.Found = s.where.key + " is not set, so no repository is worked on" + s.sees(others, ", and "+s.account.BotName+" has access to none")
		finding.Hint = "set " + s.where.key + " in toryo.yaml" + example(s.where, others)
	case len(missing) > 0:
		finding.Found = "not found with the token of " + s.account.BotName + ": " + firstOf(missing, maxRepositories) + s.sees(others, "")
		finding.Repositories = missing[:min(len(missing), maxRepositories)]
		finding.Hint = "check the names in " + s.where.key + ", and make " + s.account.BotName + " a member of these projects with the role Developer or more"
	case len(ours) == 0:
		finding.Found = fmt.Sprintf("%s is %q, and %s has access to no repository there%s", s.where.key, s.where.owner, s.account.BotName, s.sees(others, ", nor to any other"))
		finding.Hint = fmt.Sprintf("%s, or change %s%s", s.access(), s.where.key, example(s.where, others))
	default:
		finding = Finding{
			Name: finding.Name, Status: OK, Found: fmt.Sprintf("%d worked on: %s", len(ours), few(ours)), Repositories: ours[:min(len(ours), maxRepositories)],
		}
		if len(others) > 0 {
			finding.Found += fmt.Sprintf("; %d others are not, by %s", len(others), s.where.key)
		}
	}
	return finding, ours
}

// notFound are the repositories that the configuration names and that were not found.
func (s forgeSurvey) notFound(found []string) []string {
	var missing []string
	for _, wanted := range s.where.wanted {
		if !slices.ContainsFunc(found, func(name string) bool { return strings.EqualFold(name, wanted) }) {
			missing = append(missing, wanted)
		}
	}
	return missing
}

// sees names repositories that are found but not worked on, or says that there is none.
func (s forgeSurvey) sees(others []string, none string) string {
	if len(others) == 0 {
		return none
	}
	return "; " + s.account.BotName + " has access to " + few(others)
}

// example is what the setting would be for the first of the repositories that are found.
func example(where place, others []string) string {
	if len(others) == 0 {
		return ""
	}
	value := others[0]
	if where.key != "gitlab.projects" {
		value, _, _ = strings.Cut(value, "/")
	}
	return ", for example to " + value
}

// each looks at repositories side by side. Those of which the same is to be said are one finding;
// what is well comes last. Where something is wrong every repository is named.
func (s forgeSurvey) each(ctx context.Context, about string, repositories []string, look func(context.Context, string) Finding) []Finding {
	found := make([]Finding, len(repositories))
	var group errgroup.Group
	group.SetLimit(looksAtOnce)
	for i, repository := range repositories {
		group.Go(func() error {
			limited, cancel := context.WithTimeout(ctx, checkTimeout)
			defer cancel()
			found[i] = look(limited, repository)
			return nil
		})
	}
	_ = group.Wait() // nothing fails: that something cannot be read is a finding
	findings := together(found, repositories)
	slices.SortStableFunc(findings, func(a, b Finding) int { return cmp.Compare(isWell(a), isWell(b)) })
	for i, finding := range findings {
		names := firstOf(finding.Repositories, maxRepositories)
		if finding.Status == OK {
			names = few(finding.Repositories)
		}
		findings[i].Name, findings[i].Found = string(s.name)+about, names+": "+finding.Found
	}
	return findings
}

// together makes one finding of those of which the same is to be said.
func together(found []Finding, repositories []string) (findings []Finding) {
	for i, finding := range found {
		same := func(f Finding) bool {
			return f.Status == finding.Status && f.Found == finding.Found && f.Hint == finding.Hint && f.Command == finding.Command
		}
		at := slices.IndexFunc(findings, same)
		if at < 0 {
			at, findings = len(findings), append(findings, finding)
		}
		findings[at].Repositories = append(findings[at].Repositories, repositories[i])
	}
	return findings
}

// isWell is 1 for what is well, and 0 for the rest.
func isWell(finding Finding) int {
	if finding.Status == OK {
		return 1
	}
	return 0
}

// failure is the finding about a repository that cannot be looked at.
func failure(err error) Finding {
	found, hint := explained(err, "see docs/forges.md for what the bot needs")
	finding := Finding{Status: cmp.Or(severity[task.CodeOf(err)], Warning), Found: found, Hint: hint}
	if finding.Status == Missing {
		finding.Command = setUp
	}
	return finding
}

// severity is how serious it is that a repository cannot be looked at; a warning otherwise.
var severity = map[task.Code]Status{task.NotFound: Missing, task.Unauthorized: Missing}
