package command

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/toryo-dev/toryo/internal/app/cli"
	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/connect"
	"github.com/toryo-dev/toryo/internal/app/doctor"
	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/board"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

// setup is the command toryo init: its flags, and what tests replace.
type setup struct {
	site.Program
	settings cli.Settings

	forge, url, tokenFile                          string
	repositories                                   []string
	provider, model, baseURL, script, modelKeyFile string
	cloud                                          config.Cloud
	sandbox, publicURL                             string
	webhook, firstIssue, start                     string
	yes, remove, local, dryRun, json               bool

	terminal *terminal // nil if there is none
	cache    string    // folder for a draft of the answers; empty for none
	earlier  draft     // of the last time
	said     draft     // this time
	open     func(config.Config, task.Forge) (forge.Forge, error)
	client   *http.Client
	folder   string        // the current one
	wait     time.Duration // for a webhook
	serve    func(ctx context.Context, p site.Program, c config.Config, name string, ready site.WhenReady) error
	become   func(folder string) error // makes this process one of the folder's owner
}

// The answers to whether something is done.
const (
	answerYes   = "yes"
	answerNo    = "no"
	answerOnce  = "once"
	answerAuto  = "auto"
	answerOffer = "offer"
	answerNone  = "none"
)

// fewValues are those of the flags that have a few.
var fewValues = map[string][]string{
	"forge":       {"gitea", "github", "gitlab", "board"},
	"provider":    {"anthropic", "openai", "gemini", "azure", "bedrock", "vertex", "script", answerNone},
	"credentials": {"key", "environment", "file", "token_file", "workload", "metadata"},
	"sandbox":     {"auto", "docker", "bubblewrap", "kubernetes", "landlock"}, // the configuration checks these
	"webhook":     {answerAuto, answerYes, answerNo},
	"first-issue": {answerOffer, answerYes, answerNo},
	"start":       {answerYes, answerNo, answerOnce},
}

// Init is the command toryo init.
func Init(p site.Program) *cobra.Command {
	o := setup{
		Program: p, open: site.OpenForge, client: forge.HTTPClient(nil), folder: ".", wait: webhookWait, serve: site.Serve,
		become: connect.BecomeOwner,
	}
	c := &cobra.Command{
		Use:   "init",
		Short: "Connect a forge and a model, and see a first issue through",
		Long: `Look at what this machine has, ask for the rest, check each answer at once, and then
write toryo.yaml and files for the secrets, create labels and webhooks, start the server
with an agent, and follow a first issue to its pull request.

Every question has a flag. Without a terminal each answer has to be a flag, or --yes takes
the defaults. Nothing is written before the last question. It can be run again: what is
there is asked for as the default, and only what differs is changed. --remove undoes it.

Secrets are read from a file, from standard input (-) or from the environment, never from
the command line. Those that are typed go to files in the folder secrets of the data
directory, which only this user can read; those in the environment stay there.

Root can run it for the service of a package: without --config and --data, /etc/toryo/toryo.yaml
is written for the data in /var/lib/toryo, whose user gets the secrets and runs the server.`,
		Example: `  toryo init
  toryo init --forge gitea --url https://git.example.com --token-file token.txt --repository team/app \
    --provider anthropic --model NAME --model-key-file key.txt --yes
  toryo init --forge board --provider none --yes
  toryo init --remove`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			o.terminal = terminalOf(p)
			o.cache, _ = os.UserCacheDir() // without one there are no drafts
			return o.run(c.Context())
		},
	}
	o.bind(c)
	return c
}

// webhookWait is how long a webhook may take to arrive.
const webhookWait = 15 * time.Second

func (o *setup) bind(c *cobra.Command) {
	o.settings.Bind(c, cli.DataFlag, cli.AddrFlag)
	flags := c.Flags()
	flags.StringVar(&o.forge, "forge", "", "where the issues are: gitea, github, gitlab, or board for the built-in one")
	flags.StringVar(&o.url, "url", "", "address of the forge (`URL`)")
	flags.StringVar(&o.tokenFile, "token-file", "", "`FILE` with the access token of the bot, or - for standard input")
	flags.StringSliceVar(&o.repositories, repositoryFlag, nil, "give this repository labels and a webhook (`OWNER/NAME`); may be given several times. On GitLab these are worked on, on GitHub and Gitea all of their owner in which the bot is assigned")
	flags.StringVar(&o.provider, "provider", "", "whose model: anthropic, openai, gemini, azure, bedrock, vertex, script or none")
	flags.StringVar(&o.model, "model", "", "`NAME` of the model")
	flags.StringVar(&o.baseURL, "base-url", "", "address of the model's API, if it is not the provider's own (`URL`)")
	flags.StringVar(&o.cloud.Region, "region", "", "region of a model of bedrock or vertex")
	flags.StringVar(&o.cloud.Project, "project", "", "project of a model of vertex")
	flags.StringVar(&o.cloud.Credentials, "credentials", "", "how azure, bedrock or vertex know who asks: key, environment, file, token_file, workload or metadata")
	flags.StringVar(&o.cloud.CredentialsFile, "credentials-file", "", "`FILE` for the credentials file and token_file")
	flags.StringVar(&o.script, "script", "", "`FILE` that the provider script follows")
	flags.StringVar(&o.modelKeyFile, "model-key-file", "", "`FILE` with the key of the model, or - for standard input")
	flags.StringVar(&o.sandbox, "sandbox", "", "auto, docker, bubblewrap, kubernetes or landlock")
	flags.StringVar(&o.publicURL, "public-url", "", "where people and the forge reach the server (`URL`)")
	flags.StringVar(&o.webhook, "webhook", answerAuto, "auto (asked on a terminal) and yes create webhooks where the forge can reach the server; no leaves them out")
	flags.StringVar(&o.firstIssue, "first-issue", answerOffer, "offer (on a terminal), yes or no")
	flags.StringVar(&o.start, "start", "", "run the server at the end: yes, no, or once, until the first issue has its pull request (default: asked, and no where nobody is asked)")
	for name, values := range fewValues {
		cli.CompleteFlag(c, name, values...)
	}
	flags.BoolVar(&o.yes, "yes", false, "take the default of every question that has no flag")
	flags.BoolVar(&o.remove, "remove", false, "undo what toryo init did")
	flags.BoolVar(&o.local, "local", false, "with --remove: leave webhooks and labels on the forge, which need not answer then")
	flags.BoolVar(&o.dryRun, "dry-run", false, "show what would be done, and do nothing")
	flags.BoolVar(&o.json, "json", false, "print a summary as JSON; what is for people goes to standard error")
}

// shown is where what is for people goes.
func (o *setup) shown() io.Writer {
	if o.json {
		return o.Stderr
	}
	return o.Stdout
}

// say prints lines for people. What forges, models and repositories say is among them, so that
// what would command the terminal is dropped.
func (o *setup) say(format string, args ...any) {
	for line := range strings.SplitSeq(fmt.Sprintf(format, args...), "\n") {
		fmt.Fprintln(o.shown(), strings.Map(cli.Visible, line))
	}
}

// place is where the installation is.
type place struct {
	file   string // of the configuration, in full
	there  bool
	text   []byte
	loaded config.Config // with problems, if there are any
	data   string        // in full
	// over are the values of flags, which go over the configuration.
	over     map[string]string
	problems []config.Problem // with the configuration
	// unsaid says that nobody has said where the data directory is.
	unsaid bool
	// named says that another command does not find the configuration in this folder by itself.
	named bool
}

// locate finds the installation. Nothing is made.
func (o *setup) locate() (place, error) {
	var at place
	var err error
	file := cmp.Or(o.settings.FileOrDefault(), o.newFile())
	at.named = file != cli.DefaultFile
	if at.file, err = filepath.Abs(file); err != nil {
		return at, task.Wrap(task.BadConfig, err, "the configuration cannot be found")
	}
	if at.text, at.there, err = connect.ReadConfig(at.file); err != nil {
		return at, err
	}
	at.over = o.settings.Given()
	loaded, report := config.LoadText(at.file, at.text, o.Environ, at.over)
	at.unsaid = report.Origin("data_dir").IsDefault()
	at.loaded, at.problems = loaded, report.Problems
	if at.data, err = filepath.Abs(at.loaded.DataDir); err != nil {
		return at, task.Wrap(task.DataDir, err, "the data directory cannot be found")
	}
	at.loaded.DataDir = at.data
	if at.over["data_dir"] != "" { // also when this process has gone to another folder
		at.over["data_dir"] = at.data
	}
	return at, nil
}

// newFile is the configuration to begin where there is none. Root, on a machine with the package,
// connects its service, whose data directory belongs to the user of the service.
func (o *setup) newFile() string {
	said := o.settings.Given()["data_dir"] != "" || o.Variable(config.Variable("data_dir")) != ""
	machine := config.Machine
	if machine.File == "" || said {
		return cli.DefaultFile
	}
	if info, err := os.Stat(filepath.Dir(machine.File)); err == nil && info.IsDir() && connect.OtherOwner(machine.Data) != "" {
		return machine.File
	}
	return cli.DefaultFile
}

// run asks, applies and starts.
func (o *setup) run(ctx context.Context) error {
	if err := o.checkFlags(); err != nil {
		return err
	}
	at, err := o.locate()
	if err != nil {
		return err
	}
	if o.remove {
		return o.undo(ctx, at)
	}
	if err := o.sayProblems(at); err != nil {
		return err
	}
	busy, err := o.lookAtAddress(ctx, at.loaded)
	if err != nil {
		return err
	}
	found, err := connect.Detect(ctx, o.surroundings(at.loaded))
	if err != nil {
		return err
	}
	o.printFound(found)
	if o.url == "" && o.forge != string(task.Board) { // else it makes no difference
		found.Remotes = connect.RecogniseRemotes(ctx, o.client, found.Remotes)
	}
	o.printRemotes(found.Remotes)
	kept := o.draftFile(at)
	o.earlier, o.said = readDraft(kept), draft{}
	i := &interview{setup: o, at: at, found: found, busy: busy, owned: connect.OtherOwner(at.data)}
	if err := i.ask(ctx); err != nil {
		o.said.save(kept, o.earlier)
		return err
	}
	if err := o.apply(ctx, i); err != nil {
		o.said.save(kept, o.earlier)
		return halfDone(ctx, err)
	}
	removeDraft(kept)
	return o.carryOn(ctx, i)
}

// sayProblems shows what is wrong with the configuration that is there, if the answers can put it
// right. What they cannot is an error now, and not after all questions.
func (o *setup) sayProblems(at place) error {
	var others []config.Problem
	for _, problem := range at.problems {
		switch {
		case !isAnswered(problem.Key):
			others = append(others, problem)
		case at.there:
			o.say("! %s", problem)
		}
	}
	return config.Report{Problems: others}.Err()
}

// isAnswered reports whether a key is one that answers set.
func isAnswered(key string) bool {
	section, name, _ := strings.Cut(key, ".")
	switch section {
	case "github", "gitlab", "gitea":
		return slices.Contains([]string{
			"url", "owner", "projects", "bot_name", "token", "token_file", "webhook_secret", "webhook_secret_file",
			"app_id", "app_installation_id", "app_name", "app_private_key", "app_private_key_file",
		}, name)
	case "llm":
		return slices.Contains([]string{"provider", "model", "base_url", "script", "api_key", "api_key_file"}, name)
	}
	return slices.Contains([]string{"data_dir", "sandbox.kind", "server.addr", "server.public_url"}, key)
}

// halfDone says what to do when something was cut short by a person.
func halfDone(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return task.Errorf(task.Interrupted, "interrupted before everything was done").
		WithHint("run toryo init again to continue; toryo init --remove undoes what was done")
}

// surroundings are what detection looks at.
func (o *setup) surroundings(c config.Config) connect.Surroundings {
	return connect.Surroundings{
		Folder: o.folder, Environ: o.Environ, Choose: chooseSandbox(c, connect.AnySandbox),
		Sandboxes: []doctor.Check{
			doctor.ContainerEngine(cmp.Or(c.Sandbox.ContainerEngine, o.Variable("DOCKER_HOST"))), doctor.Bubblewrap, doctor.Landlock(site.LandlockVersion),
		},
	}
}

// chooseSandbox chooses a sandbox of a kind as an agent does, whatever the configuration says.
func chooseSandbox(c config.Config, kind string) doctor.Choose {
	c.Sandbox.Kind = kind
	return site.LookForSandbox(c)
}

// checkFlags refuses values that no question would take.
func (o *setup) checkFlags() error {
	for _, flag := range []struct{ name, value string }{
		{"forge", o.forge}, {"provider", o.provider}, {"webhook", o.webhook}, {"first-issue", o.firstIssue}, {"start", o.start},
	} {
		if err := oneOf(flag.value, fewValues[flag.name]); err != nil && flag.value != "" {
			return task.Errorf(task.Usage, "--%s: %v", flag.name, err)
		}
	}
	if o.local && !o.remove {
		return task.Errorf(task.Usage, "--local goes with --remove")
	}
	if o.tokenFile == "-" && o.modelKeyFile == "-" {
		return task.Errorf(task.Usage, "standard input holds one secret").WithHint("give the other one in a file")
	}
	return nil
}

// installer applies answers.
func (o *setup) installer(at place, report func(connect.Step)) *connect.Installer {
	return &connect.Installer{
		ConfigFile: at.file, DataDir: at.data, Addr: at.loaded.Server.Addr, Environ: o.Environ, Overrides: at.over, Random: rand.Reader, DryRun: o.dryRun, Local: o.local, Report: report,
		Receive: connect.ListenAt(at.loaded.Server.Addr, at.loaded.Server.TLSCertFile, at.loaded.Server.TLSKeyFile), Wait: o.wait,
		Open: o.opener(at.loaded), Shared: at.loaded.Database.Driver == "postgres",
		Import: func(ctx context.Context, name, source string) (bool, error) {
			return importToBoard(ctx, at, name, source)
		},
		Used: func(ctx context.Context, of task.Forge, name string) (bool, error) {
			return hasTasks(ctx, at, of, name)
		},
	}
}

// opener makes adapters for forges that need not be configured yet.
func (o *setup) opener(c config.Config) connect.Opener {
	return connect.Adapters(c, o.open)
}

// importToBoard puts a repository on the board, unless it is there.
func importToBoard(ctx context.Context, at place, name, source string) (made bool, err error) {
	err = withBoard(ctx, at.loaded, func(_ store.Store, b *board.Board) error {
		_, err := b.Import(ctx, name, source)
		return err
	})
	if task.CodeOf(err) == task.Conflict {
		return false, nil
	}
	return err == nil, err
}

// again is how a person calls toryo init for the same installation.
func (o *setup) again(at place, flags string) string {
	as, named := "", ""
	if config.IsMachineFile(at.file) && (os.Geteuid() == 0 || connect.Writable(at.file) != nil) {
		as = "sudo "
	}
	if at.named {
		named = " --config " + site.Quoted(at.file)
	}
	return as + "toryo init " + flags + named
}

// undo is toryo init --remove.
func (o *setup) undo(ctx context.Context, at place) error {
	steps := &stepList{setup: o}
	if !o.yes && !o.dryRun {
		if err := o.confirm(ctx, "Undo what toryo init did: webhooks, labels, keys of the configuration and files with secrets?", answerNo); err != nil {
			return err
		}
	}
	if err := o.installer(at, steps.add).Remove(ctx); err != nil {
		if task.CodeOf(err) == task.Unavailable && ctx.Err() == nil {
			o.say("! %s undoes the rest without the forge, if that does not come back.", o.again(at, "--remove --local"))
		}
		return halfDone(ctx, err)
	}
	if o.answersHealthy(ctx, site.ListeningURL(at.loaded, at.loaded.Server.Addr)) {
		o.say("! A server runs at %s: it uses its old configuration until you restart it.", at.loaded.Server.Addr)
	}
	if _, there := os.Stat(at.data); there == nil {
		o.say("The data directory %s stays: tasks, mirrors and the board are in it. Remove it yourself if you want that.", at.data)
	}
	if o.json {
		return cli.PrintJSON(o.Stdout, summary{Config: at.file, Data: at.data, Steps: steps.all})
	}
	return nil
}
