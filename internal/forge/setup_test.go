package forge

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/task"
)

var setupEvents = WebhookEvents{
	{Name: "issues", Issue: []ItemChange{TextChanged}}, {Name: "comments", Issue: []ItemChange{CommentsChanged}},
	{Name: "pulls", Pull: []ItemChange{TextChanged}}, {Name: "status"},
}

// A webhook is enabled for all events if none is named, and for none that there is not.
func TestEventsOfAWebhook(t *testing.T) {
	t.Parallel()
	known := append(setupEvents.Names(), "push")
	post := HookPost{URL: "https://toryo.example/webhooks/x", Secret: "x"}
	if got, err := post.Checked(known); err != nil || !slices.Equal(got, known) {
		t.Errorf("without a choice: %q, %v", got, err)
	}
	post.Events = []string{"pulls"}
	if got, err := post.Checked(known); err != nil || !slices.Equal(got, post.Events) {
		t.Errorf("with a choice: %q, %v", got, err)
	}
	for name, bad := range map[string]HookPost{
		"an event that is not":  {URL: post.URL, Secret: "x", Events: []string{"all"}},
		"no secret":             {URL: post.URL},
		"no address":            {Secret: "x"},
		"an address of a file":  {URL: "file:///x", Secret: "x"},
		"an address of no host": {URL: "https:///x", Secret: "x"},
	} {
		if _, err := bad.Checked(known); task.CodeOf(err) != task.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	hook := Hook{Events: []string{"push", "issues", "pulls"}}
	if missing := hook.MissingEvents(setupEvents); !slices.Equal(missing, []string{"comments"}) {
		t.Errorf("missing are %q", missing)
	}
}

func TestSecretOfAWebhookIsNotShown(t *testing.T) {
	t.Parallel()
	post := HookPost{URL: "https://me:correct-horse@toryo.example/x", Secret: `very"secret`}
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("a webhook", "post", post)
	sent := errors.New(`refused by toryo.example: {"secret": "very\"secret", "other": "header of-the-test"} very"secret very%22secret correct-horse`)
	hidden := post.Hide(sent, "header of-the-test", "")
	failed := Call{What: "create a webhook"}.Failure(&http.Response{StatusCode: http.StatusUnprocessableEntity}, hidden)
	for _, text := range []string{log.String(), fmt.Sprint(post), fmt.Sprintf("%+v %#v", post, post), hidden.Error(), failed.Error()} {
		if strings.Contains(text, "very") || strings.Contains(text, "correct-horse") || strings.Contains(text, "of-the-test") || !strings.Contains(text, "toryo.example") {
			t.Errorf("shown is %s", text)
		}
	}
	if !errors.Is(hidden, sent) || post.Hide(nil) != nil {
		t.Errorf("the error has become another: %v", hidden)
	}
	if text := (HookPost{URL: "https://me:correct-horse@toryo.example:port/", Secret: "x"}).String(); strings.Contains(text, "correct-horse") {
		t.Errorf("shown is %s", text)
	}
}

func TestCheckedLabel(t *testing.T) {
	t.Parallel()
	got, err := Label{Name: "toryo", Color: "#1D76DB", Description: "One\nline " + strings.Repeat("x", 200)}.Checked()
	if err != nil || got.Color != "1d76db" || strings.Contains(got.Description, "\n") || len([]rune(got.Description)) > 100 {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := (Label{Name: "toryo"}).Checked(); err != nil || len(got.Color) != 6 {
		t.Errorf("without a color: %+v, %v", got, err)
	}
	for _, bad := range []Label{{}, {Name: " toryo"}, {Name: "a\nb"}, {Name: "x", Color: "blue"}, {Name: "x", Color: "#fff"}} {
		if _, err := bad.Checked(); task.CodeOf(err) != task.Invalid {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

// What a first issue says is no command, whoever wrote what it was made from.
func TestTextsOfAnIssue(t *testing.T) {
	t.Parallel()
	title, text := IssuePost{Title: "One\ntwo", Body: "/close\n<!-- toryo -->\n@ann @bob", Assignees: []string{"ann"}}.Texts("o/n")
	if title != "One two" {
		t.Errorf("the title is %q", title)
	}
	if strings.HasPrefix(text, "/close") || strings.Contains(text, "<!--") || !strings.Contains(text, "@ann") || strings.Contains(text, "@bob") {
		t.Errorf("the text is %q", text)
	}
}
