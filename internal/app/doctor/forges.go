package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/reach"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
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
	// URL is where forges reach the server.
	URL string
}

// setUp is the command that sets up what forges need. It changes only what differs.
const setUp = "toryo init"

// looksAtOnce is how many repositories of a forge are looked at in parallel.
const looksAtOnce = 8

// Forges makes a survey for each configured forge: are the credentials there and accepted, which
// repositories are found with them, what may the bot do in these, and do they have our webhook?
// Without a configured forge the one survey says so.
func Forges(c config.Config, access ForgeAccess) []Survey {
	var surveys []Survey
	for _, name := range c.ConfiguredForges() {
		s := forgeSurvey{ForgeAccess: access, name: name, account: c.Account(name), where: wherein(c, name), app: name == task.GitHub && c.GitHub.UsesApp()}
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
	app     bool // a GitHub App acts as the bot, and has a webhook of its own
	setup   forge.Setup
}

func (s forgeSurvey) run(ctx context.Context) []Finding {
	if lacking := s.lacking(); lacking != nil {
		return []Finding{*lacking}
	}
	reader, setup, err := s.Connect(s.name)
	if err != nil {
		found, hint := explained(err, "see "+string(s.name)+" in toryo.yaml")
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
			Name: string(s.name), Status: OK, Found: fmt.Sprintf("rights and webhooks were looked at in the first %d of %d repositories", len(checked), len(names)),
		})
	}
	return findings
}

// lacking is a finding about what the configuration does not have.
func (s forgeSurvey) lacking() *Finding {
	name := string(s.name)
	switch {
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
	case !task.SameLogin(login, s.account.BotName):
		return Finding{
			Name: name, Status: Warning, Found: fmt.Sprintf("the credentials are those of %s, but bot_name is %s", login, s.account.BotName),
			Hint: fmt.Sprintf("set %s.bot_name to %s, or use the token of %s", name, login, s.account.BotName),
		}
	}
	return Finding{Name: name, Status: OK, Found: fmt.Sprintf("%s knows us as %s", s.account.URL, login)}
}

// ownAccount is what lets a token read whose it is.
var ownAccount = map[task.Forge]string{
	task.GitHub: "the token the permission to read metadata",
	task.GitLab: "the token the scope api, or read_user besides",
	task.Gitea:  "the token the scope read:user",
}

// refused says why a forge did not say who we are: whether it answered, and what.
func (s forgeSurvey) refused(err error) Finding {
	finding := Finding{Name: string(s.name), Status: Missing}
	failed, is := errors.AsType[*forge.Error](err)
	if !is || failed.Status == 0 {
		why, _ := reach.Target{
			Setting:   string(s.name) + ".url",
			Authority: "put the certificate of that authority into a file, and set SSL_CERT_FILE and GIT_SSL_CAINFO to it where Toryo is started",
		}.Explain(err)
		finding.Found, finding.Hint = fmt.Sprintf("the forge does not answer at %s: %s", s.account.URL, why.Found), why.Hint
		return finding
	}
	said := ""
	if failed.Err.Err != nil {
		said = ": " + textfmt.Shorten(textfmt.OneLine(failed.Err.Err.Error()), longestReason)
	}
	switch {
	case failed.Err.Code == task.Unavailable && failed.Status < http.StatusInternalServerError:
		finding.Found, finding.Hint = fmt.Sprintf("%s allows no more requests for now (status %d)", s.account.URL, failed.Status), "try again later"
	case failed.Status == http.StatusUnauthorized:
		finding.Found = fmt.Sprintf("%s does not accept the token (status 401): it is wrong, was revoked or has expired", s.account.URL)
		finding.Hint = fmt.Sprintf("make a new token for %s there, with what docs/forges.md lists, and put it in place of the old one (%s or %s.token_file)",
			s.account.BotName, strings.Join(s.account.Variables, " or "), s.name)
		finding.Command = setUp
	case failed.Status == http.StatusForbidden:
		finding.Found = fmt.Sprintf("%s accepts the token, but does not let it read whose it is (status 403)%s", s.account.URL, said)
		finding.Hint, finding.Command = "give "+ownAccount[s.name], setUp
	case failed.Status == http.StatusNotFound:
		finding.Found = fmt.Sprintf("there is no API of %s at %s (status 404)", s.name, s.account.URL)
		finding.Hint = fmt.Sprintf("set %s.url to the address of the forge's first page", s.name)
	default:
		finding.Found = fmt.Sprintf("%s answers with status %d%s", s.account.URL, failed.Status, said)
		finding.Hint = fmt.Sprintf("check %s.url, and whether a proxy answers in place of the forge", s.name)
	}
	return finding
}

// repositories says which repositories are found that are worked on, and names them.
func (s forgeSurvey) repositories(ctx context.Context, reader forge.Reader) (Finding, []string) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	finding := Finding{Name: string(s.name) + " repositories", Status: Missing}
	seen, err := reader.Repositories(ctx)
	if err != nil {
		finding.Found, finding.Hint = explained(err, "see docs/forges.md for what the token needs")
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
		finding.Found = "not found with the token of " + s.account.BotName + ": " + few(missing) + s.sees(others, "")
		finding.Hint = "check the names in " + s.where.key + ", and make " + s.account.BotName + " a member of these projects with the role Developer or more"
	case len(ours) == 0:
		finding.Found = fmt.Sprintf("%s is %q, and %s has access to no repository there%s", s.where.key, s.where.owner, s.account.BotName, s.sees(others, ", nor to any other"))
		finding.Hint = fmt.Sprintf("give %s write access to a repository of %s, or change %s%s", s.account.BotName, s.where.owner, s.where.key, example(s.where, others))
	default:
		finding = Finding{Name: finding.Name, Status: OK, Found: fmt.Sprintf("%d worked on: %s", len(ours), few(ours))}
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
// what is well comes last.
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
	where := map[Finding][]string{}
	var bad, well []Finding
	for i, finding := range found {
		switch {
		case where[finding] != nil:
		case finding.Status == OK:
			well = append(well, finding)
		default:
			bad = append(bad, finding)
		}
		where[finding] = append(where[finding], repositories[i])
	}
	findings := slices.Concat(bad, well)
	for i, finding := range findings {
		findings[i].Name, findings[i].Found = string(s.name)+about, few(where[finding])+": "+finding.Found
	}
	return findings
}

// failure is the finding about a repository that cannot be looked at.
func failure(err error) Finding {
	found, hint := explained(err, "see docs/forges.md for what the token needs")
	return Finding{Status: cmp.Or(severity[task.CodeOf(err)], Warning), Found: found, Hint: hint}
}

// severity is how serious it is that a repository cannot be looked at; a warning otherwise.
var severity = map[task.Code]Status{task.NotFound: Missing, task.Unauthorized: Missing}
