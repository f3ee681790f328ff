package command

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/connect"
	"github.com/toryo-dev/toryo/internal/app/doctor"
	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

// interview asks the questions of toryo init and keeps the answers.
type interview struct {
	*setup
	at    place
	found connect.Found
	busy  bool   // a server runs at the address
	owned string // whose the data directory is, if root runs this for another user

	answers connect.Answers
	kind    connect.Kind
	forge   connect.Forge // nil for the board
	checks  []connect.RepositoryCheck
	suggest *connect.Suggestion // the first issue, if one is to be opened
	steps   *stepList           // what was done

	newToken bool   // the one that was given has not the rights, and another is wanted
	again    bool   // the key of the model did not work
	begin    string // whether the server is started: yes, no or once
}

// ask asks everything, in the order in which one answer needs the other. Nothing is changed.
func (i *interview) ask(ctx context.Context) error {
	for _, part := range []func(context.Context) error{i.askForge, i.askSandbox, i.askModel, i.askAddress, i.askFirstIssue, i.askStart, i.askToGoOn} {
		if err := part(ctx); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return interrupted()
		}
	}
	return nil
}

// askForge asks for the forge and what is on it.
func (i *interview) askForge(ctx context.Context) error {
	i.keepPlace()
	name, err := i.askKind(ctx)
	if err != nil {
		return err
	}
	i.answers.Forge, i.kind = name, connect.KindOf(name)
	if name == task.Board {
		return i.askBoard(ctx)
	}
	if err := i.askURL(ctx); err != nil {
		return err
	}
	for {
		if err := i.askToken(ctx); err != nil {
			return err
		}
		if err := i.askRepositories(ctx); err != nil || !i.newToken {
			return err
		}
	}
}

// keepPlace writes down where the installation is, if flags say so: the next command has to
// find it, also one that is started in another folder with the same configuration.
func (i *interview) keepPlace() {
	if i.at.over["data_dir"] != "" || i.at.unsaid && i.placeFlags() != "" {
		i.answers.DataDir = i.at.data
	}
	i.answers.Addr = i.at.over["server.addr"]
}

func (i *interview) askKind(ctx context.Context) (task.Forge, error) {
	given := i.setup.forge
	if given == "" && i.url != "" {
		known, err := connect.Recognise(ctx, i.client, i.url)
		if err != nil {
			return "", named("url", err)
		}
		given = string(known.Forge)
	}
	answer, err := i.answer(ctx, initQuestion{
		text: "Where are the issues: gitea, github, gitlab, or board for the built-in one", flag: "forge", given: given, usual: string(i.likelyForge()),
		check: func(answer string) error { return oneOf(answer, []string{"gitea", "github", "gitlab", "board"}) },
	})
	return task.Forge(answer), err
}

// likelyForge is what is most likely meant: what is configured, where the current folder comes
// from, what there is a token for.
func (i *interview) likelyForge() task.Forge {
	if configured := i.at.loaded.ConfiguredForges(); len(configured) > 0 {
		return configured[0]
	}
	for _, remote := range i.found.Remotes {
		if remote.Forge != "" {
			return remote.Forge
		}
	}
	for _, token := range i.found.Tokens {
		return token.Forge
	}
	return task.Board
}

// likelyURL is where the forge is most likely.
func (i *interview) likelyURL() string {
	name := i.answers.Forge
	if configured := i.at.loaded.Account(name).URL; configured != "" && slices.Contains(i.at.loaded.ConfiguredForges(), name) {
		return configured
	}
	for _, remote := range i.found.Remotes {
		if remote.Forge == name {
			return remote.URL
		}
	}
	return i.kind.URL
}

func (i *interview) askURL(ctx context.Context) error {
	answer, err := i.answer(ctx, initQuestion{
		text: "Address of " + i.kind.Title, flag: "url", given: i.url, usual: i.likelyURL(),
		check: func(answer string) error { return i.checkURL(ctx, answer) },
	})
	i.answers.URL = connect.Address(answer)
	if err == nil && connect.Unencrypted(i.answers.URL) {
		i.say("  ! The token goes to %s unencrypted: give an address that begins with https:// if there is one.", i.answers.URL)
	}
	return err
}

// checkURL makes sure that the forge is there.
func (i *interview) checkURL(ctx context.Context, address string) error {
	if err := config.CheckValue(string(i.kind.Forge)+".url", address); err != nil {
		return err
	}
	known, err := connect.Recognise(ctx, i.client, connect.Address(address))
	if err != nil {
		return err
	}
	if known.Forge != i.kind.Forge {
		return task.Errorf(task.Invalid, "what answers at %s is %s, not %s", address, connect.KindOf(known.Forge).Title, i.kind.Title).
			WithHint("give another address, or --forge %s", known.Forge)
	}
	if known.Version != "" {
		i.say("  ✓ %s %s", i.kind.Title, known.Version)
	}
	return nil
}

// repositoriesShown is how many repositories are shown to choose from.
const repositoriesShown = 20

func (i *interview) askRepositories(ctx context.Context) error {
	given := strings.Join(i.repositories, ",")
	var all []string
	if given == "" {
		listed, err := i.forge.Repositories(ctx)
		if err != nil {
			return connect.Explain(err, i.kind, i.answers.URL)
		}
		all = i.sorted(listed)
		if i.canAsk() {
			for number, name := range all[:min(len(all), repositoriesShown)] {
				i.say("  %2d  %s", number+1, name)
			}
			if more := len(all) - repositoriesShown; more > 0 {
				i.say("      and %d more", more)
			}
		}
	}
	text := "Repositories to work on, by number or name"
	i.newToken = false
	_, err := i.answer(ctx, initQuestion{
		text: text, flag: repositoryFlag, given: given, usual: i.likelyRepositories(all),
		check: func(answer string) error {
			if answer == anotherToken && i.canAsk() {
				i.newToken = true
				return nil
			}
			return i.checkRepositories(ctx, answer, all)
		},
	})
	if err == nil && !i.newToken && i.canAsk() {
		i.said[repositoryFlag] = strings.Join(i.answers.Repositories, ",")
	}
	return err
}

// repositoryFlag is the flag that names repositories.
const repositoryFlag = "repository"

// anotherToken is the answer of a person whose token has not the rights: not every forge lets
// those of a token be changed.
const anotherToken = "token"

// canAsk reports whether a person can be asked.
func (o *setup) canAsk() bool { return o.terminal != nil && !o.yes }

// sorted puts the repository of the current folder first.
func (i *interview) sorted(listed []forge.Repository) []string {
	var all []string
	for _, one := range listed {
		all = append(all, one.Name)
	}
	slices.Sort(all)
	if here := i.repositoryHere(); here != "" {
		if at := slices.IndexFunc(all, func(name string) bool { return strings.EqualFold(name, here) }); at >= 0 {
			name := all[at]
			all = slices.Insert(slices.Delete(all, at, at+1), 0, name)
		}
	}
	return all
}

// repositoryHere is the repository of the current folder on the forge.
func (i *interview) repositoryHere() string {
	for _, remote := range i.found.Remotes {
		switch {
		case !sameHost(remote.URL, i.answers.URL):
		case remote.Forge == i.kind.Forge:
			return remote.Repository
		case remote.Forge == "": // the address has told
			return remote.On(i.kind.Forge).Repository
		}
	}
	return ""
}

// likelyRepositories is what Enter means: what is configured, the current folder's, or the only
// one.
func (i *interview) likelyRepositories(all []string) string {
	if recorded := i.installer(i.at, nil).Repositories(i.kind.Forge, i.answers.URL); len(recorded) > 0 {
		return strings.Join(recorded, ",")
	}
	if i.kind.Forge == task.GitLab && len(i.at.loaded.GitLab.Projects) > 0 {
		return strings.Join(i.at.loaded.GitLab.Projects, ",")
	}
	if here := i.repositoryHere(); here != "" && (len(all) == 0 || strings.EqualFold(all[0], here)) {
		return here
	}
	if len(all) == 1 {
		return all[0]
	}
	return ""
}

// checkRepositories looks at each repository, shows what the bot may do there, and keeps them
// if nothing is missing that is needed.
func (i *interview) checkRepositories(ctx context.Context, answer string, all []string) error {
	names, err := chosen(answer, all)
	if err != nil {
		return err
	}
	owner, err := connect.Owner(i.kind, names)
	if err != nil {
		return err
	}
	var checks []connect.RepositoryCheck
	var first error
	for _, name := range names {
		check, err := connect.CheckRepository(ctx, i.forge, i.kind, i.answers.URL, i.answers.Bot, name)
		if err != nil {
			return err
		}
		i.printCheck(check)
		checks = append(checks, check)
		if first == nil && !check.Usable() {
			first = i.lacking(check)
		}
	}
	if first != nil {
		return first
	}
	i.checks, i.answers.Owner, i.answers.Repositories = checks, owner, nil
	for _, check := range checks {
		i.answers.Repositories = append(i.answers.Repositories, check.Name)
	}
	if i.kind.OneOwner() {
		i.say("  An installation works on all repositories of one owner, here %s, in which the bot is assigned to issues.", i.answers.Owner)
	}
	return nil
}

// lacking is the error of a repository in which something is missing.
func (i *interview) lacking(check connect.RepositoryCheck) error {
	if i.canAsk() { // what is missing was shown
		return task.Errorf(task.Forbidden, "the bot cannot work in %s yet", check.Name).
			WithHint("see to it and press Enter to look again, or write %s to give another token", anotherToken)
	}
	for _, problem := range check.Problems {
		if problem.Required {
			return task.Errorf(task.Forbidden, "%s: %s", check.Name, problem.What).WithHint("%s, then try again", problem.Fix)
		}
	}
	return nil
}

// chosen reads a list of numbers and names.
func chosen(answer string, all []string) ([]string, error) {
	var names []string
	for _, word := range strings.FieldsFunc(answer, func(r rune) bool { return r == ',' || r == ' ' }) {
		if number, err := strconv.Atoi(word); err == nil {
			if number < 1 || number > len(all) {
				return nil, task.Errorf(task.Invalid, "there is no number %d in the list", number)
			}
			word = all[number-1]
		}
		if !slices.Contains(names, word) {
			names = append(names, word)
		}
	}
	if len(names) == 0 {
		return nil, task.Errorf(task.Invalid, "no repository is named")
	}
	return names, nil
}

// askSandbox asks where code runs.
func (i *interview) askSandbox(ctx context.Context) error {
	answer, err := i.answer(ctx, initQuestion{
		text: "Sandbox in which code runs: auto, docker, bubblewrap, kubernetes", flag: "sandbox", given: i.sandbox, usual: i.at.loaded.Sandbox.Kind,
		check: func(answer string) error { return config.CheckValue("sandbox.kind", answer) },
	})
	if err != nil {
		return err
	}
	i.answers.Sandbox = answer
	if missing := i.missingSandbox(ctx, answer); missing != "" {
		i.say("  ! %s\n    Tasks wait until there is one, here or on a machine with toryo agent.", missing)
	}
	return nil
}

// missingSandbox says what is wrong with a sandbox on this machine, or nothing.
func (i *interview) missingSandbox(ctx context.Context, kind string) string {
	finding := i.found.Sandbox
	if kind != connect.AnySandbox {
		finding = doctor.Sandbox(ctx, kind, chooseSandbox(i.at.loaded, kind), i.found.Sandboxes...)
	}
	if finding.Status != doctor.Missing {
		return ""
	}
	return strings.TrimSpace(fmt.Sprintf("%s: %s → %s %s", finding.Name, finding.Found, finding.Hint, finding.Command))
}

// askAddress asks where the server is reached, and whether the forge is to deliver webhooks.
func (i *interview) askAddress(ctx context.Context) error {
	if i.kind.Forge == "" {
		i.answers.PublicURL = i.publicURL
		return nil
	}
	local := site.ListeningURL(i.at.loaded, i.at.loaded.Server.Addr)
	answer, err := i.answer(ctx, initQuestion{
		text: "Address at which people and the forge reach this server", flag: "public-url", given: i.publicURL,
		usual: cmp.Or(i.at.loaded.Server.PublicURL, local),
		check: func(answer string) error { return config.CheckValue("server.public_url", answer) },
	})
	if err != nil {
		return err
	}
	i.answers.HookBase = strings.TrimSuffix(answer, "/")
	if i.answers.HookBase != local || i.at.loaded.Server.PublicURL != "" {
		i.answers.PublicURL = i.answers.HookBase
	}
	return i.askWebhook(ctx)
}

func (i *interview) askWebhook(ctx context.Context) error {
	const polled = "Changes are found by polling, within a minute."
	if i.webhook == answerNo {
		return nil
	}
	if why := connect.Unreachable(i.answers.HookBase, i.kind, i.answers.URL); why != "" {
		i.say("  ! No webhooks: %s.\n    %s", why, polled)
		return nil
	}
	if slices.ContainsFunc(i.checks, func(check connect.RepositoryCheck) bool { return !check.Has(forge.ManageHooks) }) {
		i.say("  ! No webhooks: the bot has no permission to create them. %s", polled)
		return nil
	}
	if alone := connect.ListensAlone(i.at.loaded.Server.Addr, i.answers.HookBase); alone != "" {
		i.say("  ! For webhooks: %s.", alone)
	}
	answer, err := i.answer(ctx, initQuestion{
		text: "Create webhooks, so that changes arrive immediately (yes or no)", flag: "webhook", usual: answerYes, given: i.autoWebhook(), check: isYesOrNo,
	})
	i.answers.Webhook = err == nil && isYes(answer)
	return err
}

// autoWebhook is the answer where nobody is asked: it was given, or --webhook has its default.
func (i *interview) autoWebhook() string {
	if i.terminal == nil || i.webhook == answerYes {
		return answerYes
	}
	return ""
}
