package web

import (
	"bytes"
	"context"
	"crypto/cipher"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/a-h/templ"
	"golang.org/x/time/rate"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/forge/board"
	"github.com/toryo-dev/toryo/internal/review"
	"github.com/toryo-dev/toryo/internal/task"
)

// Store is what the pages need of the database. Each part is where it is used; what the
// methods do is said in package store.
type Store interface {
	access.AccountStore
	access.AuditStore
	homeStore
	linkStore
	taskStore
	receiptStore
	reviewStore
	boardStore
	settingsStore
	statisticsStore
}

// Options is what the pages need.
type Options struct {
	Store   Store
	Log     *slog.Logger
	Now     func() time.Time
	Version string
	// Board is the built-in board; nil means that there is none.
	Board *board.Board
	// Steering moves tasks on behalf of people; nil means that nobody can.
	Steering Steering
	// Work knows what tasks have changed and which pull requests they have opened; nil means that
	// nobody knows.
	Work Work
	// Linked lets people write on items of other forges; nil means that nobody can here.
	Linked LinkedAccounts
	// Reviews keeps reviews and talks about them; nil means that there are none.
	Reviews *review.Service
	// Turns says of each task that waits when it is handed out, and why it waits, in that
	// order; nil means that nobody knows. Active is all tasks that are queued and
	// running, and maybe others, for who has read them; nil if not.
	Turns func(ctx context.Context, active []task.Task) ([]Turn, error)
	// Needs says what waits for a person; nil means that nobody knows.
	Needs func(ctx context.Context) ([]task.Need, error)
	// Quiet says whether nobody is to be told anything at a moment; nil means never.
	Quiet func(at time.Time) bool
	// Listen returns a channel that has a value after something happened to the
	// task, or to any task for "". The caller calls stop when it no longer
	// listens. Nil means that the database is looked at now and then instead.
	Listen func(id task.ID) (rung <-chan struct{}, stop func())
	// Happened is how often something has happened to tasks, besides what is in their
	// journals, and on the board: live pages are looked at again when it has changed. Nil
	// means that nobody counts.
	Happened func() (tasks, board int64)
	// Provider is where people can sign in besides with a password; nil means
	// nowhere.
	Provider access.Provider
	// Settings is what the settings page shows of the installation.
	Settings Settings
	// Connecting connects forges and models; nil means that nobody can on the pages.
	Connecting Connecting
	// LookEvery is how often the database is asked for news while someone looks
	// at a live page; 0 means a fitting interval.
	LookEvery time.Duration
}

// Pages answers the requests of browsers. It is safe for use by many goroutines.
type Pages struct {
	Options
	accounts access.Accounts
	links    links
	apps     appAttempts
	live     *watchers
	changed  keptChanges
	tasks    shared[tasksNow]
	seal     cipher.AEAD   // of linked accounts
	failures *rate.Limiter // of sign-ins that are in the audit log
	handler  http.Handler
	stopOnce sync.Once
}

// New makes the pages.
func New(options Options) *Pages {
	p := &Pages{
		Options: options,
		accounts: access.Accounts{
			Store: options.Store, Now: options.Now, Logins: &access.Limiter{Free: 5}, Addresses: &access.Limiter{Free: 30},
		},
		live:     newWatchers(options.LookEvery),
		seal:     newSeal(),
		failures: rate.NewLimiter(rate.Every(failureEvery), failuresAtOnce),
	}
	mux := http.NewServeMux()
	p.registerAssets(mux)
	p.registerDocs(mux)
	p.registerSignIn(mux)
	if options.Provider != nil {
		p.registerElsewhere(mux)
	}
	p.registerPreferences(mux)
	p.registerNotifications(mux)
	p.registerHome(mux)
	p.registerTasks(mux)
	p.registerReceipts(mux)
	p.registerStatistics(mux)
	p.registerSettings(mux)
	if options.Connecting != nil {
		p.registerConnect(mux)
	}
	if options.Board != nil {
		p.registerBoard(mux)
	}
	if options.Reviews != nil {
		p.registerReviews(mux)
	}
	mux.HandleFunc("/", p.page(access.Viewer, func(r *http.Request, _ visit) (templ.Component, error) {
		return nil, task.Errorf(task.NotFound, "there is no page at %s", r.URL.Path)
	}))
	sameOrigin := http.NewCrossOriginProtection()
	sameOrigin.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.fail(w, r, p.stranger(r), task.Errorf(task.Forbidden, "another site made your browser send this, so it was not done").
			WithHint("if you want it, open the page here and do it there"))
	}))
	p.handler = confined(sameOrigin.Handler(mux))
	return p
}

// Stop ends the live connections, so that the server need not wait for them, and what goes on
// without one.
func (p *Pages) Stop() {
	p.stopOnce.Do(func() {
		p.live.stop()
		p.changed.stop()
	})
}

// ServeHTTP answers one request.
func (p *Pages) ServeHTTP(w http.ResponseWriter, r *http.Request) { p.handler.ServeHTTP(w, r) }

// policy confines what a page can do: nothing comes from elsewhere, no script or
// style stands in the page itself, and no other site can put it into a frame.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	formPolicy + "; base-uri 'none'; frame-ancestors 'none'"

// formPolicy says where forms go.
const formPolicy = "form-action 'self'"

// policyWithForm is the policy of a page from which a form goes to another server too.
func policyWithForm(origin string) string {
	return strings.Replace(policy, formPolicy, formPolicy+" "+origin, 1)
}

func confined(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", policy)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "same-origin")
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Permissions-Policy", "camera=(), microphone=(), geolocation=()")
		header.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

// page answers with what show makes, for those who are signed in with the role.
func (p *Pages) page(role access.Role, show func(r *http.Request, v visit) (templ.Component, error)) http.HandlerFunc {
	return p.signedIn(role, func(w http.ResponseWriter, r *http.Request, v visit) {
		component, err := show(r, v)
		if err != nil {
			p.fail(w, r, v, err)
			return
		}
		p.write(w, r, http.StatusOK, component)
	})
}

// write sends a page whole or not at all.
func (p *Pages) write(w http.ResponseWriter, r *http.Request, status int, component templ.Component) {
	body, made := p.render(w, r, component)
	if !made {
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	if _, err := w.Write(body); err != nil {
		p.Log.DebugContext(r.Context(), "client disconnected", "error", err)
	}
}

// render makes a page. If it cannot be made, that is the answer.
func (p *Pages) render(w http.ResponseWriter, r *http.Request, component templ.Component) (body []byte, made bool) {
	var page bytes.Buffer
	if err := component.Render(withPageSource(r.Context()), &page); err != nil {
		p.Log.ErrorContext(r.Context(), "a page cannot be made", "path", r.URL.Path, "error", err)
		http.Error(w, "a fault of Toryo itself; the log has the details", http.StatusInternalServerError)
		return nil, false
	}
	return page.Bytes(), true
}

// fail answers with the page about an error. Faults of ours are logged here and
// not shown.
func (p *Pages) fail(w http.ResponseWriter, r *http.Request, v visit, err error) {
	info := task.CodeOf(err).Info()
	if info.Status >= http.StatusInternalServerError && !errors.Is(err, context.Canceled) {
		p.Log.ErrorContext(r.Context(), "a page failed", "path", r.URL.Path, "code", info.Code, "error", err)
	}
	p.showProblem(w, r, v, err)
}

// showProblem shows an error that is logged already, or need not be.
func (p *Pages) showProblem(w http.ResponseWriter, r *http.Request, v visit, err error) {
	info := task.CodeOf(err).Info()
	shown := problem{status: info.Status, code: string(info.Code)}
	if coded, found := task.AsError(err); found && info.Code != task.Internal {
		shown.detail, shown.hint = coded.Message, coded.Hint
	} else if info.Code == task.IllegalMove {
		shown.detail, shown.hint = task.IllegalMoveText(err)
	}
	p.write(w, r, info.Status, problemPage(v, shown))
}

// problem is an error as a page shows it.
type problem struct {
	status             int
	code, detail, hint string
}
