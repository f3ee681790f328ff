package app

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os/user"
	"time"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/access/oidc"
	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/broker"
	"github.com/toryo-dev/toryo/internal/review"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/web"
)

// newPages makes the pages for people.
func (p program) newPages(c config.Config, forges *forgeSide, served servedBoard, reviews *review.Service) *web.Pages {
	return web.New(web.Options{
		Store: forges.store, Log: forges.log, Now: p.now, Version: Version(),
		Board: pagesBoard{served}, Order: orderOf(c, forges), Waits: forges.waits, Listen: forges.bell.Listen, Steering: steering{forges.running.halts}, Reviews: reviews,
		Provider: providerOf(c.OIDC, p.now),
		Settings: web.Settings{
			Budget: web.Budget{
				TaskTokens: int64(c.Budget.TaskTokens), TaskMoney: millionths(c.Budget.TaskCost),
				DayTokens: int64(c.Budget.DayTokens), DayMoney: millionths(c.Budget.DayCost),
			},
			Configuration: settingsInForce(c), Forges: forges.health, Webhooks: forges.webhookRepositories(c),
		},
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

// waits says why nobody takes tasks, for the pages.
func (f *forgeSide) waits(ctx context.Context) ([]web.Wait, error) {
	found, err := f.handing.Waits(ctx)
	if err != nil {
		return nil, err
	}
	waits := make([]web.Wait, 0, len(found))
	for _, one := range found {
		waits = append(waits, web.Wait(one))
	}
	return waits, nil
}

// orderOf says in which order tasks are handed out, by the same rules by which
// they are. No agent is asking at this moment: one that were would have a task.
func orderOf(c config.Config, forges *forgeSide) func(context.Context) ([]web.Turn, error) {
	return func(ctx context.Context) ([]web.Turn, error) {
		now := forges.handing.clock.Now()
		queue, err := forges.store.Queue(ctx, now, 0)
		if err != nil {
			return nil, err
		}
		var turns []web.Turn
		for _, verdict := range broker.Order(broker.Situation{Now: now, Queued: queue.Ready, Running: queue.Running, Limits: broker.Limits(c.Limits)}) {
			turns = append(turns, web.Turn{Task: verdict.Task.ID, Reason: verdict.Reason, Until: verdict.Until})
		}
		return turns, nil
	}
}

// steering is what people do with tasks on the pages: what operators do over the
// API.
type steering struct{ halts *broker.Halts }

func (s steering) Stop(ctx context.Context, id task.ID) error {
	_, err := s.halts.Withdraw(ctx, id, task.ReasonStopRequested)
	return err
}

func (s steering) Pause(ctx context.Context, id task.ID) error {
	_, err := s.halts.Pause(ctx, id, task.ReasonPauseRequested)
	return err
}

func (s steering) Resume(ctx context.Context, id task.ID) error {
	_, err := s.halts.Resume(ctx, id)
	return err
}

func (s steering) Retry(ctx context.Context, id task.ID) error {
	_, err := s.halts.Retry(ctx, id)
	return err
}

// health says how the forges of others are doing, as far as this server knows.
func (f *forgeSide) health(ctx context.Context) ([]web.ForgeHealth, error) {
	var all []web.ForgeHealth
	for _, name := range task.Forges {
		way, connected := f.ways[name]
		if !connected {
			continue
		}
		counts := way.Counts()
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

// pagesBoard is the board as the pages show it.
type pagesBoard struct{ servedBoard }

// Bot is the login of the bot.
func (pagesBoard) Bot() string { return boardBot }

// Person is the board in the hands of someone.
func (b pagesBoard) Person(login string) web.BoardPerson { return b.servedBoard.Person(login) }

// invite prints a link by which whoever started the program enters its pages. It
// is for this machine alone: a server that others reach asks for a password.
func (o serve) invite(ctx context.Context, running instance) error {
	address, err := url.Parse(running.url)
	if err != nil {
		return err
	}
	if ip := net.ParseIP(address.Hostname()); ip == nil || !ip.IsLoopback() {
		_, err := fmt.Fprintln(o.stdout, "pages: sign in with an account made by toryo user create")
		return err
	}
	path, err := running.pages.Invite(ctx, personHere(), access.Admin)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(o.stdout, "pages: open %s%s (works once)\n", running.url, path)
	return err
}

// personHere is the name of whoever started the program, or one that will do.
func personHere() string {
	here, err := user.Current()
	if err != nil || here.Username == "" {
		return "admin"
	}
	return here.Username
}
