package format

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

var all = []Name{Slack, Mattermost, Discord, Teams, JSON}

func message(titles ...string) Message {
	m := Message{
		ID: "1", Type: "needs", At: time.Date(2026, 11, 18, 12, 0, 0, 0, time.UTC), Title: fmt.Sprintf("Toryo: %d need you", len(titles)), URL: "https://toryo.example.com/", Count: len(titles),
		More: func(count int) string { return fmt.Sprintf("and %d more", count) },
	}
	for i, title := range titles {
		m.Needs = append(m.Needs, Entry{
			Key: fmt.Sprint("answer/", i), Kind: "answer", What: title, Detail: "Which oil?", Fix: "answer it", URL: fmt.Sprintf("https://toryo.example.com/tasks/%d", i),
		})
	}
	return m
}

// textOf is what a service shows of a request.
func textOf(t *testing.T, in Name, m Message) string {
	t.Helper()
	body, err := Body(in, "", m)
	if err != nil {
		t.Fatal(err)
	}
	var read struct {
		Text, Content string
		Attachments   []struct {
			ContentType string
			Content     struct{ Body []struct{ Text string } }
		}
		Needs []Entry
	}
	if err := json.Unmarshal(body, &read); err != nil {
		t.Fatalf("%s: %v in %s", in, err, body)
	}
	switch in {
	case Discord:
		return read.Content
	case Teams:
		return read.Attachments[0].Content.Body[0].Text
	case JSON:
		return read.Needs[0].What
	default:
		return read.Text
	}
}

// Each service gets what it takes.
func TestBodies(t *testing.T) {
	t.Parallel()
	for in, want := range map[Name]string{
		Slack:      `{"text":"*<https://toryo.example.com/tasks/0|Fix the gate>*\nWhich oil?\n→ answer it","unfurl_links":false,"unfurl_media":false}`,
		Mattermost: `{"username":"Toryo","text":"**[Fix the gate](https://toryo.example.com/tasks/0)**\nWhich oil?\n→ answer it"}`,
		Discord:    `{"username":"Toryo","content":"**[Fix the gate](https://toryo.example.com/tasks/0)**\nWhich oil?\n→ answer it","flags":4,"allowed_mentions":{"parse":[]}}`,
		JSON:       `{"id":"1","type":"needs","at":"2026-11-18T12:00:00Z","title":"Toryo: 1 need you","url":"https://toryo.example.com/","count":1,"needs":[{"key":"answer/0","kind":"answer","what":"Fix the gate","detail":"Which oil?","fix":"answer it","url":"https://toryo.example.com/tasks/0"}]}`,
	} {
		got, err := Body(in, "", message("Fix the gate"))
		if err != nil || string(got) != want {
			t.Errorf("%s: %s, %v", in, got, err)
		}
	}
	if text := textOf(t, Teams, message("Fix the gate")); !strings.Contains(text, "[Fix the gate](https://toryo.example.com/tasks/0)") {
		t.Error(text)
	}
	if _, err := Body("smoke", "", message("x")); err == nil {
		t.Error("a format that there is not is taken")
	}
}

// Several things are one message, which is never too long.
func TestManyInOneMessage(t *testing.T) {
	t.Parallel()
	if text := textOf(t, Slack, message("a", "b")); !strings.HasPrefix(text, "*<https://toryo.example.com/|Toryo: 2 need you>*\n• <https://toryo.example.com/tasks/0|a>\nWhich oil?") {
		t.Error(text)
	}
	long := strings.Repeat("直す [*] ", 2000)
	m := message(long, long, long, long, long, long, long, long, long, long, long, long)
	m.Count = 5000
	for i := range m.Needs {
		m.Needs[i].Detail, m.Needs[i].Why, m.Needs[i].Fix = long, long, long
	}
	for _, in := range all[:4] {
		text := textOf(t, in, m)
		if n := utf8.RuneCountInString(text); n > markups[in].most || !strings.Contains(text, "more") || !strings.Contains(text, "tasks/1)") && !strings.Contains(text, "tasks/1|") {
			t.Errorf("%s: %d characters, %s", in, n, text)
		}
	}
}

// Texts of others are text in every service.
func TestHostileTexts(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`", "text": "x`, "<!channel> <@U123> <https://evil.example|click>", "@channel @all @everyone @here", "[click](https://evil.example)", "**bold** `code` ~~x~~ ||x||",
		"{{.URL}} {{.Text}}", "\x1b[31mred\x00", "a\n# heading\n> quote", "# heading", "> quote", "1. list", "<script>alert(1)</script>", "&lt;!channel&gt;", `\`, "```",
		"https://evil.example/login", "see HTTPS://evil.example, or WWW.evil.example", "ftp:https://evil.example", "_www.evil.example_", "(www.evil.example)",
	} {
		for _, in := range all {
			m := message(text)
			shown := textOf(t, in, m) // which fails if it is not JSON any more
			if in == JSON {
				continue
			}
			first, _, _ := strings.Cut(shown, "\n")
			for _, bad := range []string{"<!", "<@", "@channel", "@all", "@everyone", "@here", "<https://evil", "<script", "\x1b", "\n# ", "\n> "} {
				if strings.Contains(shown, bad) {
					t.Errorf("%s shows %q of %q", in, shown, text)
				}
			}
			if regexp.MustCompile(`(?i)https?://evil|www\.evil`).MatchString(shown) {
				t.Errorf("%s makes a link of %q: %q", in, text, shown)
			}
			if in != Slack && regexp.MustCompile(`[^\\]\]\(https://evil`).MatchString(shown) {
				t.Errorf("%s links %q of %q", in, shown, text)
			}
			if strings.Count(first, "https://toryo.example.com/tasks/0") != 1 || !strings.Contains(shown, "\n→ answer it") {
				t.Errorf("%s shows %q of %q", in, shown, text)
			}
		}
	}
}

// A template of one's own is filled, and has to make JSON.
func TestTemplates(t *testing.T) {
	t.Parallel()
	got, err := Body(Mattermost, `{"channel": "ops", "text": "{{.Title}}: {{.Text}}", "link": "{{.URL}}", "id": "{{.ID}}"}`, message(`say "hi"`))
	if err != nil || !strings.Contains(string(got), `"channel":"ops"`) || !strings.Contains(string(got), `say \"hi\"`) || !json.Valid(got) {
		t.Errorf("%s, %v", got, err)
	}
	for _, bad := range []string{
		"", "{", `{"text": {{.Text}}}`, "{{.Text}}", `{"text": "{{.Text}}`,
		`{"text": "{{ .Text }}"}`, `{"text": "{{.text}}"}`, `{"text": "{{.Text}} {{.Message}}"}`,
	} {
		if Check(bad) == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	for _, good := range []string{`{"text": "{{.Text}}"}`, `{"a": {"b": {"text": "{{.Title}}{{.URL}} {{.ID}}"}}}`} {
		if err := Check(good); err != nil {
			t.Error(err)
		}
	}
}
