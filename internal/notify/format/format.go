// Package format writes a message about what waits for people as the services take it that
// teams read: Slack, Mattermost, Discord, Teams, and plain JSON for programs.
//
// Titles, names and details are texts of others. None of them becomes a mention or a field of the
// request, and no address in them a link. A name of a host without https:// or www. before it stays as
// it is, since a name of a file looks the same: some services make a link of it.
package format

import (
	"bytes"
	"embed"
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/toryo-dev/toryo/internal/lazyregexp"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

// Name is a format.
type Name string

// The formats.
const (
	Slack      Name = "slack"
	Mattermost Name = "mattermost"
	Discord    Name = "discord"
	Teams      Name = "teams"
	JSON       Name = "json"
)

// Message is what is told at once. Its JSON is the format for programs.
type Message struct {
	ID    string    `json:"id"`
	Type  string    `json:"type"` // "needs", or "test"
	At    time.Time `json:"at"`
	Title string    `json:"title"`
	URL   string    `json:"url,omitempty"` // of the pages
	Count int       `json:"count"`         // of all that it tells of
	Needs []Entry   `json:"needs"`         // the first of them
	// More says in words that there are some more.
	More func(count int) string `json:"-"`
}

// Entry is one thing that waits for a person.
type Entry struct {
	Key    string     `json:"key"`
	Kind   string     `json:"kind"`
	Reason string     `json:"reason,omitempty"`
	What   string     `json:"what"`
	Why    string     `json:"why,omitempty"`
	Detail string     `json:"detail,omitempty"`
	Fix    string     `json:"fix,omitempty"`
	Since  *time.Time `json:"since,omitempty"`
	Task   string     `json:"task,omitempty"`
	Item   string     `json:"item,omitempty"`
	URL    string     `json:"url,omitempty"`
}

//go:embed templates/*.json
var templates embed.FS

// markup is how a service writes text.
type markup struct {
	escape func(text string) string
	bold   func(text string) string
	link   func(text, url string) string
	most   int // characters of the text; every service takes more
}

var (
	markdownMarkup = markup{escapeMarkdown, func(text string) string { return "**" + text + "**" }, markdownLink, 8000}
	discordMarkup  = markup{escapeMarkdown, markdownMarkup.bold, markdownLink, 1900} // it takes 2,000 characters
	slackMarkup    = markup{escapeSlack, func(text string) string { return "*" + text + "*" }, slackLink, 8000}
)

var markups = map[Name]markup{Slack: slackMarkup, Mattermost: markdownMarkup, Discord: discordMarkup, Teams: markdownMarkup, JSON: markdownMarkup}

// Body is a message as a service takes it. The template replaces that of the format; empty
// means that it does not. In it {{.Text}}, {{.Title}}, {{.URL}} and {{.ID}} stand in strings of JSON.
func Body(in Name, template string, m Message) ([]byte, error) {
	if template == "" && in == JSON {
		return json.Marshal(m)
	}
	if template == "" {
		file, err := templates.ReadFile("templates/" + string(in) + ".json")
		if err != nil {
			return nil, task.Errorf(task.Invalid, "there is no format %q", in)
		}
		template = string(file)
	}
	return fill(template, in, m)
}

// Check says whether a template makes JSON of every message, and has no other names in it.
func Check(template string) error {
	const odd = "\"\\\n\u2028</script>"
	if left := names.Replace(template); strings.Contains(left, "{{") {
		return task.Errorf(task.Invalid, "the template of a notification has {{ and no name that is known behind it").
			WithHint("write exactly {{.Text}}, {{.Title}}, {{.URL}} or {{.ID}}, without spaces")
	}
	_, err := fill(template, Slack, Message{ID: odd, Title: odd, URL: odd, Needs: []Entry{{What: odd}}, Count: 1})
	return err
}

// names takes the names out of a template that are replaced.
var names = strings.NewReplacer("{{.Text}}", "", "{{.Title}}", "", "{{.URL}}", "", "{{.ID}}", "")

// fill puts the parts of a message into a template, each once: what stands in a part is
// not looked at again.
func fill(template string, in Name, m Message) ([]byte, error) {
	style := markups[in]
	body := strings.NewReplacer(
		"{{.Text}}", inJSON(style.text(m)), "{{.Title}}", inJSON(style.plain(m.Title)), "{{.URL}}", inJSON(m.URL), "{{.ID}}", inJSON(m.ID),
	).Replace(template)
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(body)); err != nil {
		return nil, task.Wrap(task.Invalid, err, "the template of a notification does not make JSON").
			WithHint(`write it like {"text": "{{.Text}}"}`)
	}
	return compact.Bytes(), nil
}

// inJSON is a text as it stands between quotes.
func inJSON(text string) string {
	var quoted bytes.Buffer
	encoder := json.NewEncoder(&quoted)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(text); err != nil {
		return "" // a string is always written
	}
	return strings.TrimSuffix(strings.TrimPrefix(quoted.String(), `"`), "\"\n")
}

// How many characters are shown of a headline, and of what is below it.
const (
	mostWhat   = 200
	mostDetail = 300
)

// text is the whole message. What no longer fits is counted.
func (s markup) text(m Message) string {
	var text strings.Builder
	if m.Count != 1 || len(m.Needs) == 0 {
		text.WriteString(s.bold(s.link(s.plain(m.Title), m.URL)))
	}
	shown := 0
	for _, need := range m.Needs {
		entry := s.entry(need, m.Count > 1)
		if !s.fits(text.String(), entry) {
			need.Why, need.Detail, need.Fix = "", "", ""
			entry = s.entry(need, m.Count > 1)
		}
		if !s.fits(text.String(), entry) {
			break
		}
		text.WriteString(entry)
		shown++
	}
	if left := m.Count - shown; left > 0 && m.More != nil {
		text.WriteString("\n" + s.link(s.plain(m.More(left)), m.URL))
	}
	return strings.TrimPrefix(text.String(), "\n")
}

// fits says whether there is room for a piece of text, and a line after it.
func (s markup) fits(text, piece string) bool {
	return utf8.RuneCountInString(text)+utf8.RuneCountInString(piece) <= s.most-2*mostWhat
}

// entry is one thing: a line with what it is, and what is known of it.
func (s markup) entry(need Entry, listed bool) string {
	what := s.link(s.plain(textfmt.Shorten(need.What, mostWhat)), need.URL)
	if listed {
		what = "\n• " + what
	} else {
		what = "\n" + s.bold(what)
	}
	for _, more := range []string{need.Why, need.Detail} {
		if more != "" {
			what += "\n" + s.plain(textfmt.Shorten(more, mostDetail))
		}
	}
	if need.Fix != "" {
		what += "\n→ " + s.plain(textfmt.Shorten(need.Fix, mostDetail))
	}
	return what
}

// plain is a text of others on one line, as text.
func (s markup) plain(text string) string {
	return s.escape(withoutLinks(textfmt.OneLine(textfmt.Plain(text))))
}

// linked is what services make a link of by themselves.
var linked = lazyregexp.New(`(?i)://|www`)

// withoutLinks breaks the addresses in a text, so that no service makes links of them.
func withoutLinks(text string) string {
	return linked.ReplaceAllStringFunc(text, func(found string) string {
		if strings.HasPrefix(found, ":") {
			return ":" + breaks + "//"
		}
		return found + breaks
	})
}

// markdownSigns are the characters that mean something in Markdown wherever they stand, and
// atStart those that do at the start of a line.
const (
	markdownSigns = "\\`*_[]|~"
	atStart       = "#>-+=0123456789"
)

// breaks is a space without width. Behind it nothing is a mention, a tag, a list or an address.
const breaks = "\u200b"

// escapeMarkdown writes text so that nothing in it is Markdown or a mention.
func escapeMarkdown(text string) string {
	var escaped strings.Builder
	for i, r := range text {
		switch {
		case i == 0 && strings.ContainsRune(atStart, r):
			escaped.WriteString(breaks)
		case strings.ContainsRune(markdownSigns, r):
			escaped.WriteByte('\\')
		}
		escaped.WriteRune(r)
		if r == '@' || r == '<' {
			escaped.WriteString(breaks)
		}
	}
	return escaped.String()
}

// escapeSlack writes text as Slack wants it. What begins with < is what mentions and links.
func escapeSlack(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "*", "\u2217", "|", "\u00a6", "@", "@"+breaks).Replace(text)
}

func markdownLink(text, url string) string {
	if url == "" {
		return text
	}
	return "[" + text + "](" + strings.NewReplacer("(", "%28", ")", "%29", " ", "%20", "<", "%3C", ">", "%3E").Replace(url) + ")"
}

func slackLink(text, url string) string {
	if url == "" {
		return text
	}
	return "<" + strings.NewReplacer("<", "%3C", ">", "%3E", "|", "%7C", " ", "%20").Replace(url) + "|" + text + ">"
}
