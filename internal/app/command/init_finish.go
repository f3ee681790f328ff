package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/app/cli"
	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/connect"
	"github.com/toryo-dev/toryo/internal/app/doctor"
	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/board"
	"github.com/toryo-dev/toryo/internal/git"
	"github.com/toryo-dev/toryo/internal/server"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

// lookAtAddress makes sure that the server will be able to listen. Busy is that a server of
// Toryo runs there already; anything else that does is an error.
func (o *setup) lookAtAddress(ctx context.Context, c config.Config) (busy bool, err error) {
	listener, err := server.Listen(ctx, c.Server.Addr)
	if err == nil {
		return false, listener.Close()
	}
	if task.CodeOf(err) != task.AddressInUse || !o.answersHealthy(ctx, site.ListeningURL(c, c.Server.Addr)) {
		return false, err
	}
	return true, nil
}

// healthTimeout is how long a server on this machine may take to answer.
const healthTimeout = 3 * time.Second

// answersHealthy reports whether what listens there answers as a server of Toryo does.
func (o *setup) answersHealthy(ctx context.Context, address string) bool {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address+"/healthz", http.NoBody)
	if err != nil {
		return false
	}
	answer, err := o.client.Do(request)
	if err != nil {
		return false
	}
	return answer.Body.Close() == nil && answer.StatusCode == http.StatusOK
}

// printFound shows what the machine has.
func (o *setup) printFound(found connect.Found) {
	o.say("This machine has")
	findings := []doctor.Finding{found.Git}
	for _, one := range found.Sandboxes { // one will do: who has one need not read what the others lack
		if one.Status == doctor.OK || found.Sandbox.Status != doctor.OK {
			findings = append(findings, one)
		}
	}
	_ = doctor.Print(indented{o.shown()}, findings)
	for _, key := range found.Keys {
		o.say("  ✓ a key for models of %s in %s", key.Provider, key.Variable)
	}
	for _, token := range found.Tokens {
		o.say("  ✓ a token for %s in %s", token.Forge, token.Variable)
	}
}

// printRemotes shows where the current folder comes from.
func (o *setup) printRemotes(remotes []connect.Remote) {
	for _, remote := range remotes {
		sort := ""
		if remote.Forge != "" {
			sort = " (" + string(remote.Forge) + ")"
		}
		o.say("  ✓ the git remote %s: %s on %s%s", cli.OneLine(remote.Name), cli.OneLine(remote.Repository), cli.OneLine(remote.URL), sort)
	}
	o.say("")
}

// indented writes lines below a heading.
type indented struct{ to io.Writer }

// Write implements io.Writer.
func (i indented) Write(text []byte) (int, error) {
	lines := "  " + strings.ReplaceAll(strings.TrimSuffix(string(text), "\n"), "\n", "\n  ") + "\n"
	_, err := i.to.Write([]byte(lines))
	return len(text), err
}

// printCheck shows what the bot may do in a repository.
func (o *setup) printCheck(check connect.RepositoryCheck) {
	o.say("  %s: the bot may", check.Name)
	for _, right := range check.Rights {
		switch right.State {
		case forge.RightGiven:
			o.say("    ✓ %s", connect.RightText(right.Right))
		case forge.RightUnknown:
			found := textfmt.Shorten(textfmt.OneLine(right.Found), maxProblem)
			o.say("    ? %s (%s)", connect.RightText(right.Right), cmp.Or(found, "the forge does not tell"))
		case forge.RightMissing: // it is among the problems
		}
	}
	for at, problem := range check.Problems {
		mark := "!"
		if problem.Required {
			mark = "✗"
		}
		o.say("    %s %s", mark, textfmt.Shorten(textfmt.OneLine(problem.What), maxProblem))
		if at == len(check.Problems)-1 || check.Problems[at+1].Fix != problem.Fix {
			o.say("      → %s", problem.Fix)
		}
	}
}

// maxProblem is how much of a problem is shown: forges explain at length.
const maxProblem = 300

// askFirstIssue offers a first issue in the first repository.
func (i *interview) askFirstIssue(ctx context.Context) error {
	if wanted, err := i.wantsFirstIssue(); err != nil || !wanted {
		return err
	}
	repository := i.answers.Repositories[0]
	suggested, found, err := i.suggestion(ctx, repository)
	if err == nil && !found {
		err = task.Errorf(task.NotFound, "nothing in %s looks like a good first issue", repository).WithHint("assign one of yours to %s", i.answers.Bot)
	}
	switch {
	case err != nil && i.firstIssue == answerYes:
		return err
	case err != nil:
		i.say("  ! No first issue: %s", oneLineOf(err))
		return nil
	}
	i.say("A good first issue in %s: %q\n  because %s. It would say:", repository, suggested.Title, suggested.Why)
	i.say("  | %s", strings.ReplaceAll(suggested.Body, "\n", "\n  | "))
	given := ""
	if i.firstIssue == answerYes {
		given = answerYes
	}
	answer, err := i.answer(ctx, initQuestion{
		text: fmt.Sprintf("Open it and assign it to %s (yes or no)", i.answers.Bot), flag: "first-issue", given: given, usual: answerYes, check: isYesOrNo,
	})
	if err == nil && isYes(answer) {
		i.suggest = &suggested
	}
	return err
}

// wantsFirstIssue reports whether there may be a first issue: one is wanted, or it can be asked
// whether it is, there is a model for it, and there was none before.
func (i *interview) wantsFirstIssue() (bool, error) {
	if len(i.answers.Repositories) == 0 || i.firstIssue == answerNo || i.dryRun {
		return false, nil
	}
	if i.firstIssue == answerYes {
		return true, nil
	}
	if !i.canAsk() || i.answers.Model.Provider == "" {
		return false, nil
	}
	had, err := i.installer(i.at, nil).HadFirstIssue(i.answers.Forge, i.answers.Repositories[0])
	return !had, err
}

// suggestion looks through the repository as the forge has it. For the board that is what is
// committed in the current folder, which goes there.
func (i *interview) suggestion(ctx context.Context, repository string) (made connect.Suggestion, found bool, err error) {
	table, err := site.EnvironmentsOf(i.at.loaded)
	if err != nil {
		return made, false, err
	}
	var folder string
	if i.answers.Forge == task.Board {
		folder, err = connect.FetchFolder(ctx, i.answers.Import)
	} else {
		folder, err = connect.Fetch(ctx, i.forge, repository)
	}
	if err != nil {
		return made, false, err
	}
	defer func() { err = errors.Join(err, connect.Discard(folder)) }()
	return connect.Suggest(table, folder)
}

// askStart asks whether the server is started at the end.
func (i *interview) askStart(ctx context.Context) error {
	i.begin = answerNo
	switch {
	case i.dryRun:
		return nil
	case i.start == answerOnce && i.busy:
		return task.Errorf(task.AddressInUse, "a server runs at %s already", i.at.loaded.Server.Addr).WithHint("stop it, or leave out --start")
	case i.busy:
		i.say("  ! A server runs at %s. Restart it to use the new configuration: %s", i.at.loaded.Server.Addr, i.howToRestart())
		return nil
	case i.start == "" && !i.canAsk():
		return nil
	}
	answer, err := i.answer(ctx, initQuestion{
		text: "Start the server with an agent now (yes or no)", flag: "start", given: i.start, usual: answerYes,
		check: func(answer string) error {
			return oneOf(strings.ToLower(answer), []string{"y", "n", answerYes, answerNo, answerOnce})
		},
	})
	switch {
	case err != nil:
		return err
	case answer == answerOnce:
		i.begin = answerOnce
		return i.checkOnce(ctx)
	case isYes(answer):
		i.begin = answerYes
	}
	return nil
}

// ownedText says whose the data directory is.
func (i *interview) ownedText() string {
	return fmt.Sprintf("The data directory %s belongs to %s, and root runs this.", i.at.data, i.owned)
}

// checkOnce makes sure that a first issue can come to a pull request: nobody may be there to
// see that it waits.
func (i *interview) checkOnce(ctx context.Context) error {
	const once = "--start once waits for the pull request of the first issue"
	missing := i.missingSandbox(ctx, i.answers.Sandbox)
	switch {
	case i.suggest == nil:
		return task.Errorf(task.Usage, "%s, and there is none", once).WithHint("give --first-issue yes")
	case i.answers.Model.Provider == "":
		return task.Errorf(task.NotReady, "%s, and there is no model", once).WithHint("give --provider")
	case missing != "":
		return task.Errorf(task.NotReady, "%s, and there is no sandbox", once).WithHint("%s", missing)
	}
	return nil
}

// askToGoOn shows what will be done.
func (i *interview) askToGoOn(ctx context.Context) error {
	if i.dryRun || !i.canAsk() {
		return nil
	}
	i.say("\nNow %s is written.", i.at.file)
	if inside, err := filepath.Rel(i.found.Folder, i.at.data); i.found.Folder != "" && err == nil && filepath.IsLocal(inside) {
		i.say("! The data directory %s is in a git repository: name it in .gitignore, or choose another place with --data.", i.at.data)
	}
	if i.kind.Forge != "" || i.answers.Model.Key.Value != "" {
		i.say("Secrets that are nowhere else yet go to %s.", i.at.data)
	}
	if i.kind.Forge != "" {
		i.say("Labels are created in %s%s.", strings.Join(i.answers.Repositories, ", "), map[bool]string{true: ", and webhooks"}[i.answers.Webhook])
	}
	return i.confirm(ctx, "Go ahead?", answerYes)
}

// stepList collects what was done, and shows it.
type stepList struct {
	*setup
	all []connect.Step
}

var stepMarks = map[connect.StepState]string{connect.Done: "✓", connect.Unchanged: "=", connect.Planned: "+", connect.LeftOut: "!"}

func (s *stepList) add(step connect.Step) {
	s.all = append(s.all, step)
	text := step.What
	if step.Detail != "" {
		text += ": " + step.Detail
	}
	s.say("%s %s", stepMarks[step.State], strings.ReplaceAll(text, "\n", "; "))
}

// summary is what a program wants to know.
type summary struct {
	Config       string                    `json:"config"`
	Data         string                    `json:"data"`
	Forge        task.Forge                `json:"forge,omitempty"`
	URL          string                    `json:"url,omitempty"`
	Bot          string                    `json:"bot,omitempty"`
	Repositories []connect.RepositoryCheck `json:"repositories,omitempty"`
	Steps        []connect.Step            `json:"steps"`
	Warnings     []string                  `json:"warnings,omitempty"` // about the configuration
	Issue        string                    `json:"issue,omitempty"`
	Pull         string                    `json:"pull,omitempty"`
}

// apply writes and creates what the answers say.
func (o *setup) apply(ctx context.Context, i *interview) error {
	i.steps = &stepList{setup: o}
	return o.installer(i.at, i.steps.add).Apply(ctx, i.answers)
}

// carryOn opens the first issue and starts the server, if that was wanted.
func (o *setup) carryOn(ctx context.Context, i *interview) error {
	result := summary{
		Config: i.at.file, Data: i.at.data, Forge: i.answers.Forge, URL: i.answers.URL, Bot: i.answers.Bot, Repositories: i.checks, Steps: i.steps.all,
	}
	if o.dryRun {
		o.say("Nothing was changed.")
		return o.print(result)
	}
	if i.owned != "" && i.begin != answerNo {
		// What follows makes the database, and is the first that only that user may read.
		if err := o.become(i.at.data); err != nil {
			return err
		}
		o.say("The server runs as %s, whose data directory it is.", i.owned)
	}
	loaded, report := config.Load(i.at.file, o.Environ, i.at.over)
	if err := report.Err(); err != nil {
		return err
	}
	loaded.DataDir = i.at.data
	for _, warning := range report.Warnings {
		o.say("! %s", warning)
		result.Warnings = append(result.Warnings, warning.String())
	}
	i.sayVariables()
	var issue forge.Item
	if i.suggest != nil {
		var err error
		if issue, err = o.openIssue(ctx, loaded, i); err != nil {
			return err
		}
		result.Issue = issue.URL
	}
	if i.begin == answerNo {
		o.say("\nStart the server with an agent: %s\nThen assign an issue to %s. %s says what is missing.", i.howToStart(), i.answers.Bot, i.command("doctor"))
		return o.print(result)
	}
	return o.startAndFollow(ctx, loaded, i, issue, result)
}

// sayVariables names what leads this command to forge and model through a proxy or by a private
// authority, and what the services of the package do not have.
func (i *interview) sayVariables() {
	var names []string
	for _, name := range git.NetworkVariables() {
		if i.Variable(name) != "" {
			names = append(names, name)
		}
	}
	if len(names) > 0 && config.HasServices(i.at.file) {
		i.say("! The service does not have %s of this shell. Put a line NAME=VALUE for each into a file that only root can read, such as %s; then sudo systemctl edit toryo-up (or toryo), and below [Service] the line EnvironmentFile=%[2]s.",
			strings.Join(names, ", "), filepath.Join(filepath.Dir(i.at.file), "environment"))
	}
}

// howToRestart is how a server that runs is started again. Of the services of the package the one
// that runs is: toryo-up, or toryo without an agent.
func (i *interview) howToRestart() string {
	again := "stop it, then " + i.command("up")
	if config.HasServices(i.at.file) {
		return again + "; or, if it is a service: sudo systemctl try-restart toryo-up toryo"
	}
	return again
}

// howToStart is how the server is started with an agent: also by the service of the package, where
// that is what was connected.
func (i *interview) howToStart() string {
	if i.owned != "" && config.HasServices(i.at.file) {
		return "sudo systemctl enable --now toryo-up, which is a service, or " + i.command("up")
	}
	return i.command("up")
}

// command is how a person calls another command for this installation.
func (i *interview) command(name string) string {
	as := ""
	if i.owned != "" {
		as = "sudo -u " + i.owned + " "
	}
	return as + "toryo " + name + i.placeFlags()
}

// placeFlags are the flags by which another command finds the installation.
func (i *interview) placeFlags() string {
	if i.at.named {
		return " --config " + site.Quoted(i.at.file)
	}
	return ""
}

func (o *setup) print(result summary) error {
	if !o.json {
		return nil
	}
	return cli.PrintJSON(o.Stdout, result)
}

// openIssue opens the first issue.
func (o *setup) openIssue(ctx context.Context, c config.Config, i *interview) (item forge.Item, err error) {
	installing := o.installer(i.at, i.steps.add)
	open := func(on connect.Issues) error {
		var opened bool
		item, opened, err = installing.FirstIssue(ctx, on, i.answers.Forge, i.answers.Repositories[0], i.answers.Bot, *i.suggest)
		if err != nil {
			return connect.Explain(err, i.kind, i.answers.URL)
		}
		if opened {
			o.say("✓ issue %s, assigned to %s", item.URL, i.answers.Bot)
		} else {
			o.say("= issue %s is there already", item.URL)
		}
		return nil
	}
	if i.answers.Forge != task.Board {
		err = open(i.forge)
		return item, err
	}
	err = withBoard(ctx, c, func(database store.Store, b *board.Board) error {
		person, err := personOn(ctx, database, b)
		if err != nil {
			return err
		}
		return open(boardIssues{person})
	})
	return item, err
}
