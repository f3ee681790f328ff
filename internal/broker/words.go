package broker

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"strings"
	"text/template"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

//go:embed texts/*.md
var textFiles embed.FS

var texts = template.Must(template.ParseFS(textFiles, "texts/*.md"))

// WIPRef is where the work in progress of a task is, in its namespace.
const WIPRef = "refs/toryo/wip"

// languageAge is how old the text may be by which the language is told.
const languageAge = time.Hour

// Words is what the server says on a forge about the state of a task: one label,
// and a comment where people are to know why.
type Words struct {
	Labels    func(task.Forge) task.LabelNames
	Language  string // auto, ja or en
	Snapshots *Snapshots
	// GitURL is where people fetch the work of a task; "" if they cannot.
	GitURL func(id task.ID) string
}

// notice is what a text says.
type notice struct {
	Reason     string
	Seconds    string
	Unanswered bool // the agent did not end the run itself
	Kept       string
	Fetch      string
	Ref        string
	Branch     string
	Pull       string // address of a pull request that the run has opened
	Paused     string // for how long
	Days       int
}

// language is the language of a task's item, as far as it is known.
func (w *Words) language(ctx context.Context, t task.Task) Language {
	title, body := t.Title, ""
	if snapshot, _ := w.Snapshots.Get(ctx, t.Key, languageAge); !snapshot.ReadAt.IsZero() { //nolint:errcheck // the title of the task will do
		title, body = snapshot.Item.Title, snapshot.Item.Body
	}
	return LanguageOf(w.Language, title, body)
}

// about fills in what a text says about the work that was kept.
func (w *Words) about(t task.Task, kept string) notice {
	n := notice{Kept: kept, Ref: WIPRef, Branch: "toryo-" + string(t.ID)[max(0, len(t.ID)-8):]}
	if w.GitURL != nil && kept != "" {
		n.Fetch = w.GitURL(t.ID)
	}
	return n
}

// text writes a notice.
func (w *Words) text(name string, in Language, n notice) (string, error) {
	var out bytes.Buffer
	if err := texts.ExecuteTemplate(&out, name+"."+string(in)+".md", n); err != nil {
		return "", task.Wrap(task.Internal, err, "the text "+name+" cannot be written")
	}
	return strings.TrimSpace(out.String()), nil
}

// effects returns the forge writes that go with a move: the label of the state
// that it leads to, and a comment unless that is empty.
func (w *Words) effects(comment string) store.Effects {
	return func(_, after task.Task) []store.Action {
		actions := []store.Action{mustAct(w.label(after))}
		if comment != "" {
			write := Write{Item: after.Key, Task: after.ID, Generation: after.Generation, What: "said/" + string(after.State)}
			actions = append(actions, mustAct(NewAction(write, Comment{Text: comment})))
		}
		return actions
	}
}

// label is the write that makes the item show the state of its task.
func (w *Words) label(t task.Task) (store.Action, error) {
	names := w.Labels(t.Key.Forge)
	var others []string
	for _, state := range task.States {
		if state != t.State {
			others = append(others, names[state.Label()])
		}
	}
	write := Write{Item: t.Key, Task: t.ID, Generation: t.Generation, What: "label/" + string(t.State)}
	return NewAction(write, StateLabel{Label: names[t.State.Label()], Others: others})
}

// mustAct returns an action that can always be written down: it is text alone.
func mustAct(action store.Action, err error) store.Action {
	if err != nil {
		panic(err)
	}
	return action
}

// seconds is a duration as people are told of it.
func seconds(d time.Duration) string { return fmt.Sprintf("%.1f", max(0, d.Seconds())) }

// lasting is a longer duration as people are told of it.
func lasting(d time.Duration, in Language) string {
	days, hours, minutes := int(d.Hours())/24, int(d.Hours())%24, int(d.Minutes())%60
	units := map[Language][3]string{English: {"%d d ", "%d h ", "%d min"}, Japanese: {"%d日", "%d時間", "%d分"}}[in]
	var out strings.Builder
	for i, n := range []int{days, hours} {
		if n > 0 {
			fmt.Fprintf(&out, units[i], n)
		}
	}
	fmt.Fprintf(&out, units[2], minutes)
	return out.String()
}
