package site

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/access/oidc"
	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/connectpage"
	"github.com/toryo-dev/toryo/internal/broker"
	"github.com/toryo-dev/toryo/internal/review"
	"github.com/toryo-dev/toryo/internal/server"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/web"
)

// newPages makes the pages for people.
func newPages(p Program, c config.Config, f *connections, tasks *dispatch, reviews *review.Service) *web.Pages {
	options := web.Options{
		Store: f.store, Log: f.log, Now: p.Now, Version: Version(),
		Board: f.board, Work: work{f.mirrors, f.store}, Linked: accounts{c, f.forges, f.changes}, Turns: tasks.turns, Needs: tasks.needs.List, Quiet: quietIn(c), Listen: tasks.notifier.ListenToJournal, Happened: tasks.notifier.Counts, Steering: steering{tasks.controller}, Reviews: reviews,
		Provider: providerOf(c.OIDC, p.Now),
		Settings: web.Settings{
			Budget: web.Budget{
				TaskTokens: int64(c.Budget.TaskTokens), TaskMoney: millionths(c.Budget.TaskCost),
				DayTokens: int64(c.Budget.DayTokens), DayMoney: millionths(c.Budget.DayCost),
			},
			Configuration: settingsInForce(c), Forges: f.health, Webhooks: f.webhookRepositories(c), Memory: c.Memory.Enabled, Mask: f.mask,
		},
	}
	if p.Started.File != "" {
		options.Connecting = connectPage(p, c, f)
	}
	return web.New(options)
}

// webhookWait is how long a webhook that was set up may take to arrive.
const webhookWait = 15 * time.Second

// connectPage is what the page on which forges and models are connected does.
func connectPage(p Program, c config.Config, f *connections) *connectpage.Page {
	return connectpage.New(connectpage.Options{
		File: p.Started.File, Given: p.Started.Given, Environ: p.Environ, Overrides: p.Started.Overrides,
		Running: c, Command: p.Started.Command, Service: p.Started.Service, OwnAgent: p.Started.OwnAgent, URL: f.url,
		Open: connectForge, Client: connectpage.NewClient(), API: gitHubAPI, Ask: askThrough, Scope: scopeOf, NeedsModel: UsesModel,
		Webhooks: f.webhooks, Events: f.webhookRepositories(c), Transports: f.transports, Store: f.store,
		Now: p.Now, Random: rand.Reader, Wait: webhookWait, Log: f.log,
	})
}

// providerOf is where people sign in besides with a password, or nil.
func providerOf(c config.OIDC, now func() time.Time) access.Provider {
	if c.Issuer == "" {
		return nil
	}
	return oidc.New(oidc.Options{
		Name: c.Name, Issuer: c.Issuer, ClientID: c.ClientID, ClientSecret: c.ClientSecret.Reveal(), RedirectURL: c.RedirectURL, Scopes: c.Scopes, Now: now,
		Rules: oidc.Rules{
			LoginClaim: c.LoginClaim, GroupsClaim: c.GroupsClaim,
			Admins: c.AdminGroups, Operators: c.OperatorGroups, Viewers: c.ViewerGroups, Users: c.Users,
		},
	})
}

// needsOf lists what waits for a person.
func needsOf(c config.Config, f *connections, tasks *dispatch) *broker.Needs {
	faults := func(ctx context.Context) []broker.Fault {
		return append(tasks.serverFaults(ctx), notificationFaults(ctx, c, f.store)...)
	}
	return &broker.Needs{
		Store: f.store, Limits: broker.Limits(c.Limits), Day: DayBudget(c), Now: f.clock.Now, Waits: tasks.Waits, Faults: faults,
	}
}

// DayBudget is what models may use in a day; 0 means no limit.
func DayBudget(c config.Config) store.Amount {
	return store.Amount{Tokens: int64(c.Budget.DayTokens), Money: millionths(c.Budget.DayCost)}
}

// turns says in which order tasks are handed out and why they wait, for the pages.
func (d *dispatch) turns(ctx context.Context, active []task.Task) ([]web.Turn, error) {
	turns := d.Turns
	if active != nil {
		turns = func(ctx context.Context) ([]broker.Turn, error) { return d.TurnsOf(ctx, active) }
	}
	found, err := turns(ctx)
	if err != nil {
		return nil, err
	}
	shown := make([]web.Turn, 0, len(found))
	for _, one := range found {
		shown = append(shown, web.Turn(one))
	}
	return shown, nil
}

// steering is what people do with tasks on the pages: what operators do over the
// API.
type steering struct{ controller *broker.Controller }

func (s steering) Stop(ctx context.Context, id task.ID) error {
	_, err := s.controller.StopTask(ctx, id, task.ReasonStopRequested)
	return err
}

func (s steering) Pause(ctx context.Context, id task.ID) error {
	_, err := s.controller.Pause(ctx, id, task.ReasonPauseRequested)
	return err
}

func (s steering) Resume(ctx context.Context, id task.ID) error {
	_, err := s.controller.Resume(ctx, id)
	return err
}

func (s steering) Approve(ctx context.Context, id task.ID, revision int) error {
	_, err := s.controller.Approve(ctx, id, revision)
	return err
}

func (s steering) ResumeAll(ctx context.Context) error {
	_, err := s.controller.ResumeAll(ctx, server.OperatorSource)
	return err
}

func (s steering) Retry(ctx context.Context, id task.ID) error {
	_, err := s.controller.Retry(ctx, id)
	return err
}

// health says how the forges of others are doing, as far as this server knows.
func (f *connections) health(ctx context.Context) ([]web.ForgeHealth, error) {
	var all []web.ForgeHealth
	for _, name := range task.Forges {
		through, connected := f.transports[name]
		if !connected {
			continue
		}
		counts := through.Counts()
		_, hooked := f.webhooks.Forges[name]
		received, err := f.store.ListReceived(ctx, name)
		if err != nil {
			return nil, err
		}
		all = append(all, web.ForgeHealth{
			Forge: name, Requests: counts.Requests, Failed: counts.Failed, Limited: counts.Limited, Hooked: hooked, Deliveries: received,
		})
	}
	return all, nil
}

func millionths(amount float64) int64 { return int64(amount * 1e6) }

func settingsInForce(c config.Config) []web.Setting {
	var all []web.Setting
	for _, one := range (config.Report{}).Settings(c) {
		all = append(all, web.Setting{Key: one.Key, Value: one.Value})
	}
	return all
}
