package broker

import (
	"context"
	"embed"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

//go:embed texts/*.md
var textFiles embed.FS

// texts are the paragraphs of what we say, by language and name.
var texts = map[task.Language]map[string]string{task.English: paragraphs("en"), task.Japanese: paragraphs("ja")}

// paragraphs reads a file of paragraphs, each below a line with its name.
func paragraphs(language string) map[string]string {
	content, err := textFiles.ReadFile("texts/" + language + ".md")
	if err != nil {
		panic(err) // it is in the program
	}
	named := map[string]string{}
	for _, part := range strings.Split("\n"+string(content), "\n== ")[1:] {
		name, text, _ := strings.Cut(part, "\n")
		named[name] = strings.TrimSpace(text)
	}
	return named
}

// WIPRef is where the work in progress of a task is, in its namespace.
const WIPRef = "refs/toryo/wip"

const (
	// languageAge is how old the text may be by which the language is told, and
	// languageWait how long we wait for it: the title will do.
	languageAge  = time.Hour
	languageWait = 3 * time.Second
)

// Words is what the server says on a forge about the state of a task: one label,
// and a comment where people are to know why.
type Words struct {
	Labels    Labels
	Language  string // auto, ja or en
	Snapshots *Snapshots
	// GitURL is where people fetch the work of a task; "" if they cannot.
	GitURL func(id task.ID) string
}

// notice is what we say. What is empty is not said.
type notice struct {
	Reason     task.Reason
	Took       time.Duration // from the request to the end of the work
	Unanswered bool          // the agent did not end the run itself
	Kept       string        // commit of the work so far
	Fetch      string        // where people fetch it
	Branch     string        // what they may call it
	Pull       string        // address of a pull request that the run has opened
	Paused     time.Duration
	Days       int
}

// language is the language of a task's item, as far as it is known.
func (w *Words) language(ctx context.Context, t task.Task) task.Language {
	ctx, cancel := context.WithTimeout(ctx, languageWait)
	defer cancel()
	title, body := t.Title, ""
	if snapshot, _ := w.Snapshots.Get(ctx, t.Key, languageAge); !snapshot.ReadAt.IsZero() { // else the title will do
		title, body = snapshot.Item.Title, snapshot.Item.Body
	}
	return task.Language(w.Language).Of(title, body)
}

// about fills in what there is to say about the work that was kept.
func (w *Words) about(t task.Task, kept string) notice {
	n := notice{Kept: kept, Branch: "toryo-" + string(t.ID)[max(0, len(t.ID)-8):]}
	if w.GitURL != nil && kept != "" {
		n.Fetch = w.GitURL(t.ID)
	}
	return n
}

// stopped, paused, failed, lapsed and resumed write down what people are told.

func (n notice) stopped(in task.Language) string {
	return n.text(in, "stopped", n.when("unanswered", n.Unanswered), n.when("pull", n.Pull != ""), n.work(true), "again")
}

func (n notice) paused(in task.Language) string {
	return n.text(in, "paused", n.when("unanswered", n.Unanswered), n.when("kept", n.Kept != ""))
}

func (n notice) failed(in task.Language) string { return n.text(in, "failed", n.work(false)) }

func (n notice) lapsed(in task.Language) string { return n.text(in, "lapsed", n.work(false), "again") }

func (n notice) resumed(in task.Language) string { return n.text(in, "resumed") }

// when is a paragraph that is said in some cases only.
func (notice) when(name string, said bool) string {
	if !said {
		return ""
	}
	return name
}

// work names the paragraphs about what was kept.
func (n notice) work(evenNothing bool) string {
	switch {
	case n.Kept == "":
		return n.when("nothing", evenNothing)
	case n.Fetch == "":
		return "kept"
	default:
		return "kept fetch"
	}
}

// text joins paragraphs, of which several may be named together.
func (n notice) text(in task.Language, names ...string) string {
	var said []string
	for name := range strings.FieldsSeq(strings.Join(names, " ")) {
		said = append(said, texts[in][name])
	}
	return strings.NewReplacer(
		"{reason}", because(n.Reason, in), "{seconds}", fmt.Sprintf("%.1f", max(0, n.Took.Seconds())),
		"{kept}", n.Kept, "{fetch}", n.Fetch, "{ref}", WIPRef, "{branch}", n.Branch, "{pull}", n.Pull,
		"{paused}", lasting(n.Paused, in), "{days}", strconv.Itoa(n.Days),
	).Replace(strings.Join(said, "\n\n"))
}

// effects returns the forge writes that go with a move: the label of the state
// that it leads to, and a comment unless that is empty.
func (w *Words) effects(comment string) store.Effects {
	return func(before, after task.Task) []store.Action {
		actions := w.Labels.Effects(before, after)
		if comment != "" {
			actions = append(actions, writesOf(after, named{"said/" + string(after.State), Comment{Text: comment}})...)
		}
		return actions
	}
}

// lasting is a longer duration as people are told of it.
func lasting(d time.Duration, in task.Language) string {
	days, hours, minutes := int(d.Hours())/24, int(d.Hours())%24, int(d.Minutes())%60
	units := map[task.Language][3]string{task.English: {"%d d ", "%d h ", "%d min"}, task.Japanese: {"%d日", "%d時間", "%d分"}}[in]
	var out strings.Builder
	for i, n := range []int{days, hours} {
		if n > 0 {
			fmt.Fprintf(&out, units[i], n)
		}
	}
	fmt.Fprintf(&out, units[2], minutes)
	return out.String()
}
