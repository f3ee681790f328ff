package connect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

// HookURL is where a forge delivers its webhooks.
func HookURL(publicURL string, of task.Forge) string {
	return strings.TrimSuffix(publicURL, "/") + "/webhooks/" + string(of)
}

// Unreachable says why a forge cannot reach a server at an address, as far as the addresses
// tell; it is empty if nothing speaks against it.
func Unreachable(publicURL string, kind Kind, forgeURL string) string {
	server, err := url.Parse(publicURL)
	if err != nil || server.Hostname() == "" {
		return "the server has no address that others could reach; set server.public_url"
	}
	other, err := url.Parse(forgeURL)
	if err != nil {
		return ""
	}
	host := server.Hostname()
	switch {
	case isLoopback(host) && !isLoopback(other.Hostname()):
		return fmt.Sprintf("%s is an address of this machine alone, and %s is another; set server.public_url to one that the forge can reach", publicURL, other.Hostname())
	case wellKnownHost(forgeURL) != "" && isPrivate(host):
		return fmt.Sprintf("%s is a private address, which %s cannot reach; set server.public_url to a public one", publicURL, kind.Title)
	}
	return ""
}

// ListensAlone says that only this machine reaches what listens at addr, though the public address
// is another, and what to do; it is empty otherwise. A reverse proxy may be there: nobody sees that
// from here.
func ListensAlone(addr, publicURL string) string {
	host, _, err := net.SplitHostPort(addr)
	public, unclear := url.Parse(publicURL)
	ip := net.ParseIP(host)
	alone := host == "localhost" || ip != nil && ip.IsLoopback()
	if err != nil || unclear != nil || !alone || isLoopback(public.Hostname()) {
		return ""
	}
	return fmt.Sprintf("the server listens on %s only, which no other machine reaches: let a reverse proxy pass %s on to it (docs/operations.md), or let it listen for others (toryo init --addr :PORT)", addr, publicURL)
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || ip != nil && (ip.IsLoopback() || ip.IsUnspecified())
}

func isPrivate(host string) bool {
	ip := net.ParseIP(host)
	if ip == nil {
		return !strings.Contains(host, ".") || strings.HasSuffix(host, ".local") || strings.HasSuffix(host, ".internal") || isLoopback(host)
	}
	return isLoopback(host) || ip.IsPrivate() || ip.IsLinkLocalUnicast()
}

// polling is what becomes of repositories without a webhook.
const polling = "changes are found by polling instead, within a minute"

// hooks creates the webhooks that are missing, corrects those that differ, and tries one.
func (w *work) hooks(ctx context.Context) error {
	if !w.answers.Webhook || w.kind.Forge == "" {
		return nil
	}
	if why := Unreachable(w.answers.HookBase, w.kind, w.answers.URL); why != "" {
		w.Report(Step{What: "webhooks", State: LeftOut, Detail: why + "; until then " + polling})
		return nil
	}
	f, err := w.open()
	if err != nil {
		return err
	}
	var made []recordedHook
	for _, repository := range w.answers.Repositories {
		hook, is, err := w.hookOf(ctx, f, repository)
		if err != nil {
			return err
		}
		if is {
			made = append(made, hook)
		}
		if err := w.removeFormer(ctx, f, hook); err != nil {
			return err
		}
	}
	if len(made) == 0 || w.DryRun {
		return nil
	}
	return w.tryHooks(ctx, f, made)
}

// hookOf sees to the webhook of one repository. It returns it if it is new or was changed.
func (w *work) hookOf(ctx context.Context, f Forge, repository string) (noted recordedHook, changed bool, err error) {
	what := "webhook of " + repository
	noted = recordedHook{Forge: w.kind.Forge, Address: w.answers.URL, Repository: repository, URL: HookURL(w.answers.HookBase, w.kind.Forge)}
	all, err := f.Hooks(ctx, repository)
	if err != nil {
		return noted, false, w.leaveOut(ctx, what, err, polling)
	}
	post := forge.HookPost{URL: noted.URL, Secret: w.secret.Reveal()}
	ours := slices.DeleteFunc(all, func(hook forge.Hook) bool { return !sameHook(hook.URL, noted.URL) })
	if len(ours) == 0 {
		// Nobody else creates one with our address, so that it has our secret if it is found later.
		w.record.sign(noted, "", w.secret)
		err = w.putHook(ctx, what, noted, func() (forge.Hook, error) { return f.CreateHook(ctx, repository, post) })
		return noted, err == nil, w.orLeaveOut(ctx, what, err)
	}
	hook, err := w.onlyNewest(ctx, f, repository, ours)
	if err != nil {
		return noted, false, w.orLeaveOut(ctx, what, err)
	}
	if w.record.isSigned(noted, hook.ID, w.secret) && hook.Active && len(hook.MissingEvents(w.kind.events)) == 0 {
		w.Report(Step{What: what, State: Unchanged})
		return noted, false, w.keepID(noted, hook.ID)
	}
	if w.Shared && !w.record.hasHook(noted) {
		w.Report(Step{What: what, State: LeftOut, Detail: "there is one to this address already, with a secret that is not known here, perhaps of another server: " + copyFiles + "; or delete that webhook and try again"})
		return noted, false, nil
	}
	noted.Edited = !slices.Contains(w.record.Hooks, noted)
	w.record.unsign(noted)
	err = w.putHook(ctx, what+" corrected", noted, func() (forge.Hook, error) { return f.EditHook(ctx, repository, hook.ID, post) })
	return noted, err == nil, w.orLeaveOut(ctx, what, err)
}

// copyFiles is how the servers of one database get the same secrets.
const copyFiles = "connect on one server, and copy toryo.yaml and the folder secrets of its data directory to the others"

// keepID notes the id of a webhook of ours that the forge could not say when it was created.
func (w *work) keepID(noted recordedHook, id string) error {
	known := slices.ContainsFunc(w.record.Signed, func(one signedHook) bool { return one.is(noted) && one.ID == id })
	if known || w.DryRun {
		return nil
	}
	w.record.sign(noted, id, w.secret)
	return w.record.save()
}

// onlyNewest deletes all webhooks with our address but the newest: see [forge.Webhooks].
func (w *work) onlyNewest(ctx context.Context, f Forge, repository string, ours []forge.Hook) (forge.Hook, error) {
	newest := slices.MaxFunc(ours, func(a, b forge.Hook) int { // ids are numbers
		return cmp.Or(cmp.Compare(len(a.ID), len(b.ID)), strings.Compare(a.ID, b.ID))
	})
	for _, hook := range ours {
		if hook.ID == newest.ID {
			continue
		}
		err := w.do("older webhook of "+repository+" removed", func() error { return f.DeleteHook(ctx, repository, hook.ID) })
		if err != nil {
			return newest, err
		}
	}
	return newest, nil
}

// putHook creates or edits a webhook. What the forge has refused is not noted any more; of what
// it did not answer nobody knows. A webhook that comes with an error is there.
func (w *work) putHook(ctx context.Context, what string, noted recordedHook, effect func() (forge.Hook, error)) error {
	isNew := addOnce(&w.record.Hooks, noted)
	var made forge.Hook
	err := w.do(what, func() (err error) {
		made, err = effect()
		return err
	})
	switch {
	case w.DryRun:
		return err
	case made.ID != "":
		w.record.sign(noted, made.ID, w.secret)
	case err != nil && isNew && ctx.Err() == nil && task.CodeOf(err) != task.Unavailable && task.CodeOf(err) != task.DataDir:
		drop(&w.record.Hooks, noted)
		w.record.unsign(noted)
	default:
		return err
	}
	return errors.Join(err, w.record.save())
}

// removeFormer deletes webhooks that we have created in the same repository for an address which
// the server had before.
func (w *work) removeFormer(ctx context.Context, f Forge, now recordedHook) error {
	for _, former := range slices.Clone(w.record.Hooks) {
		if former.Edited || !former.sameRepository(now) || sameHook(former.URL, now.URL) {
			continue
		}
		what := fmt.Sprintf("webhook of %s to %s", former.Repository, former.URL)
		if err := w.do(what+" removed", func() error { return deleteHooks(ctx, f, former) }); err != nil {
			if err := w.leaveOut(ctx, what, err, "it stays until the next toryo init"); err != nil {
				return err
			}
			continue
		}
		drop(&w.record.Hooks, former)
		w.record.unsign(former)
		if w.DryRun {
			continue
		}
		if err := w.record.save(); err != nil {
			return err
		}
	}
	return nil
}

func (w *work) orLeaveOut(ctx context.Context, what string, err error) error {
	if err == nil {
		return nil
	}
	return w.leaveOut(ctx, what, err, polling)
}

func sameHook(one, other string) bool {
	return strings.EqualFold(strings.TrimSuffix(one, "/"), strings.TrimSuffix(other, "/"))
}

// tryHooks has the forge deliver something to the first webhook: what holds for one holds for
// all, since they have one address and one secret. If it does not arrive, all are removed.
func (w *work) tryHooks(ctx context.Context, f Forge, made []recordedHook) error {
	const what = "delivery of a webhook"
	if w.Receive == nil {
		return nil
	}
	received, err := w.Receive(ctx, w.kind, w.secret)
	if err != nil {
		w.Report(Step{What: what, State: LeftOut, Detail: "it was not tried: " + err.Error() + "; toryo doctor shows later what was delivered"})
		return ctx.Err()
	}
	defer received.Close()
	failed, elsewhere := w.deliver(ctx, f, made[0], received)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case failed == "":
		w.Report(Step{What: what, State: Done, Detail: "it has arrived"})
		return nil
	case elsewhere && w.Shared:
		w.Report(Step{What: what, State: Done, Detail: "it has not arrived here, but the forge says that it was answered, so that the webhooks stay; " + copyFiles})
		return nil
	case w.Shared:
		w.Report(Step{What: what, State: LeftOut, Detail: failed + "; it may have come to another server, so that the webhooks stay: toryo doctor shows later what was delivered; " + copyFiles})
		return nil
	}
	for _, hook := range made {
		if err := w.withdrawHook(ctx, f, hook); err != nil {
			return err
		}
	}
	w.Report(Step{What: what, State: LeftOut, Detail: failed + "; " + w.reachHint() + "; until then " + polling})
	return nil
}

// deliver says what went wrong with a delivery, or nothing, and whether somebody else has taken
// it: the forge tells of an answer that nobody here has given. That is another server of ours if
// they share a database, and else a stranger.
func (w *work) deliver(ctx context.Context, f Forge, hook recordedHook, received Receiver) (failed string, elsewhere bool) {
	there, err := f.Hooks(ctx, hook.Repository)
	if err != nil {
		return "the webhook cannot be read: " + err.Error(), false
	}
	at := slices.IndexFunc(there, func(one forge.Hook) bool { return sameHook(one.URL, hook.URL) })
	if at < 0 {
		return "the forge does not have the webhook that it was given", false
	}
	before, err := f.LastDelivery(ctx, hook.Repository, there[at].ID)
	told := err == nil
	if err := f.TestHook(ctx, hook.Repository, there[at].ID); err != nil {
		return "the forge could not deliver a test to " + hook.URL + ": " + err.Error(), false
	}
	limit := time.NewTimer(w.Wait)
	defer limit.Stop()
	select {
	case <-received.Arrived():
		return "", false
	case <-ctx.Done():
		return "interrupted", false
	case <-limit.C:
	}
	last, err := f.LastDelivery(ctx, hook.Repository, there[at].ID)
	elsewhere = told && err == nil && last != before && last.Status >= http.StatusOK && last.Status < http.StatusMultipleChoices
	return fmt.Sprintf("a test that the forge was asked to deliver to %s has not arrived in %s", hook.URL, w.Wait), elsewhere
}

// reachHint is what to do about webhooks that do not arrive.
func (w *work) reachHint() string {
	if alone := ListensAlone(w.Addr, w.answers.HookBase); alone != "" {
		return alone + "; if that is so already, " + w.allowHint()
	}
	return w.allowHint()
}

// allowHint is how a forge is told that it may reach an address.
func (w *work) allowHint() string {
	switch w.kind.Forge {
	case task.Gitea:
		return "let Gitea reach the address: in its app.ini, in the section [webhook], set ALLOWED_HOST_LIST = external," + allowedHost(w.answers.HookBase) + " and start Gitea again, then connect again (toryo init, or the page Connections)"
	case task.GitLab:
		return "let GitLab reach the address (for one of your own: Admin, Settings, Network, Outbound requests: allow requests to the local network from webhooks), then connect again (toryo init, or the page Connections)"
	}
	return "let " + w.kind.Title + " reach the address from the internet, then connect again (toryo init, or the page Connections)"
}

// allowedHost is what Gitea has to be told about an address: its host.
func allowedHost(address string) string {
	if parsed, err := url.Parse(address); err == nil && parsed.Hostname() != "" {
		return parsed.Hostname()
	}
	return address
}

// withdrawHook removes a webhook that does not arrive. One that was there before stays.
func (w *work) withdrawHook(ctx context.Context, f Forge, hook recordedHook) error {
	if hook.Edited {
		return nil
	}
	if err := deleteHooks(ctx, f, hook); err != nil {
		w.Report(Step{What: "webhook of " + hook.Repository, State: LeftOut, Detail: "it could not be removed: " + err.Error()})
		return ctx.Err()
	}
	drop(&w.record.Hooks, hook)
	w.record.unsign(hook)
	return w.record.save()
}

// deleteHooks deletes the webhooks of a repository that lead to an address of ours.
func deleteHooks(ctx context.Context, f Forge, hook recordedHook) error {
	all, err := f.Hooks(ctx, hook.Repository)
	if err != nil {
		return err
	}
	for _, one := range all {
		if sameHook(one.URL, hook.URL) {
			if err := f.DeleteHook(ctx, hook.Repository, one.ID); err != nil {
				return err
			}
		}
	}
	return nil
}
