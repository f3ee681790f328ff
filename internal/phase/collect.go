package phase

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/toryo-dev/toryo/internal/environment"
	"github.com/toryo-dev/toryo/internal/lazyregexp"
	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/phase/conversation"
	"github.com/toryo-dev/toryo/internal/phase/tool"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
	"github.com/toryo-dev/toryo/internal/workdir"
)

// project is what is known of the project before anything is changed.
type project struct {
	files      []string // of the base branch
	rules      string
	detection  environment.Detection
	references string
}

const (
	listedFiles    = 600
	longestRules   = 32_000
	longestRequest = 64_000
	longestEarlier = 32_000 // 8,000 tokens
	shownManifest  = 4_000
	shownReference = 8_000
	mostReferences = 8
)

// collect looks at the project. It is done anew when a run goes on: nothing of it
// is needed that is not in the journal by then.
func (r *run) collect(ctx context.Context) error {
	p := &project{}
	var err error
	if err := r.remark(ctx); err != nil {
		return err
	}
	if p.files, err = r.Repository.BaseFiles(ctx); err != nil {
		return fmt.Errorf("list the files of the base: %w", err)
	}
	if p.rules, err = r.readRules(ctx, p.files); err != nil {
		return err
	}
	files, err := workdir.Open(r.Repository.Workspace())
	if err != nil {
		return task.Wrap(task.DataDir, err, "the workspace cannot be opened")
	}
	defer func() { _ = files.Close() }()
	if p.detection, err = r.Setup.Table.Detect(files.FS(), ""); err != nil {
		return err
	}
	if r.state.timesEnded(task.Planning) == 0 { // they are for understanding and planning
		p.references = r.references(ctx, p.files)
	}
	r.loadImages(ctx)
	r.project = p
	return nil
}

// ruleFiles are where projects write down their rules for agents.
var ruleFiles = []string{"AGENTS.md", "CLAUDE.md"}

// readRules reads the project's rules as the base branch has them: what a branch
// under work says about rules does not count.
func (r *run) readRules(ctx context.Context, files []string) (string, error) {
	var names []string
	for _, name := range files {
		if slices.Contains(ruleFiles, path.Base(name)) {
			names = append(names, name)
		}
	}
	slices.SortStableFunc(names, func(a, b string) int { return strings.Count(a, "/") - strings.Count(b, "/") })
	var parts []string
	room := longestRules
	for i, name := range names {
		if room <= 0 {
			parts = append(parts, fmt.Sprintf("There are %d more files with rules; read them before you work below their folders.", len(names)-i))
			break
		}
		data, err := r.Repository.Base(ctx, name)
		if code := task.CodeOf(err); code == task.NotFound || code == task.TooLarge {
			continue // the remarks of the workspace name what is too long
		}
		if err != nil {
			return "", fmt.Errorf("read %s of the base: %w", name, err)
		}
		text := tool.Shorten(tool.Printable(string(data)), room)
		room -= len(text)
		about := "for the whole project"
		if dir := path.Dir(name); dir != "." {
			about = "for what is below " + plainName(dir)
		}
		parts = append(parts, "Rules "+about+":\n"+llm.Quote(llm.Origin{Source: "project rules " + name, Access: "write"}, text))
	}
	return strings.Join(parts, "\n\n"), nil
}

var (
	pathInText = lazyregexp.New(`[A-Za-z0-9_][A-Za-z0-9_./+-]*[A-Za-z0-9_]`)
	itemInText = lazyregexp.New(`(?:^|[\s(\[,;:"'、。（「])([\w./-]*[#!]\d+|https?://[^\s)>\]]+/(?:issues|pulls?|merge_requests)/\d+)\b`)
)

// references shows the files and the other items that the request names.
func (r *run) references(ctx context.Context, files []string) string {
	text := tool.Shorten(r.Work.Title+"\n"+r.Work.Body, longestRequest)
	return strings.Join(append(r.namedFiles(ctx, text, files), r.namedItems(ctx, text)...), "\n\n")
}

func (r *run) namedFiles(ctx context.Context, text string, files []string) []string {
	known := map[string]bool{}
	for _, name := range files {
		known[name] = true
	}
	var parts []string
	seen := map[string]bool{}
	for _, name := range pathInText.FindAllString(text, -1) {
		if !known[name] || seen[name] || len(seen) == mostReferences {
			continue
		}
		seen[name] = true
		data, err := r.Repository.Base(ctx, name)
		if err != nil {
			continue // it is there to be read with a tool
		}
		parts = append(parts, llm.Quote(llm.Origin{Source: "file " + name}, tool.Shorten(tool.Printable(string(data)), shownReference)))
	}
	return parts
}

// namedItems shows what other items say, and says which are not at hand. That they
// cannot be read is no reason not to work.
func (r *run) namedItems(ctx context.Context, text string) []string {
	var names []string
	for _, found := range itemInText.FindAllStringSubmatch(text, 100) {
		if !slices.Contains(names, found[1]) {
			names = append(names, found[1])
		}
	}
	if len(names) == 0 {
		return nil
	}
	items, err := r.Forge.References(ctx)
	if err != nil {
		r.Log.WarnContext(ctx, "failed to read items that the request names", "error", err)
	}
	var parts []string
	for _, item := range items[:min(len(items), mostReferences)] {
		kind := "issue"
		if item.Kind == task.Pull {
			kind = "pull request"
		}
		source := fmt.Sprintf("%s %d (%s), which the request names", kind, item.Number, textfmt.OneLine(item.State))
		parts = append(parts, llm.Quote(llm.Origin{Source: source, Author: item.Author},
			tool.Shorten(tool.Printable(item.Title+"\n\n"+item.Body), shownReference)))
		names = slices.DeleteFunc(names, func(name string) bool { return numberOf(name) == item.Number })
	}
	if len(names) > 0 {
		parts = append(parts, "The request also names "+strings.Join(names, ", ")+", whose text is not at hand.")
	}
	return parts
}

// numberOf is the number at the end of the name of an item.
func numberOf(name string) int64 {
	number, err := strconv.ParseInt(name[strings.LastIndexAny(name, "#!/")+1:], 10, 64)
	if err != nil {
		return 0
	}
	return number
}

// requestText is the request as the model is told it.
func (r *run) requestText(in room) string {
	work := r.Work
	var b strings.Builder
	kind := "request"
	switch work.Item.Kind {
	case task.Issue:
		kind = "issue"
	case task.Pull:
		kind = "pull request"
	}
	b.WriteString(strings.TrimSpace("The task is the " + kind + " " + work.ItemName()))
	if len(work.Labels) > 0 {
		fmt.Fprintf(&b, " (labels: %s)", tool.Printable(llm.QuoteLine(strings.Join(work.Labels, ", "))))
	}
	b.WriteString(". What it asks for is what you are to do to the project:\n")
	b.WriteString(quoteBy(kind, work.Author, work.Title+"\n\n"+work.Body, longestRequest))
	for _, text := range in.fitted(len(work.Comments), func(i, most int) string {
		return quoteComment(sourceOf(work.Comments[i]), work.Comments[i], most)
	}) {
		b.WriteString("\n" + text)
	}
	if work.Pull != nil {
		b.WriteString("\n" + r.pullText(*work.Pull, in))
	}
	return b.String()
}

// pullText is the pull request that the work is about.
func (r *run) pullText(pull Pull, in room) string {
	var b strings.Builder
	fmt.Fprintf(&b, "You work on the branch of pull request %d. ", pull.Number)
	switch {
	case r.Work.Cause == task.ReasonBaseConflict:
		b.WriteString(baseConflictText(r.Work.Base, r.state.conflicts) + " ")
	case r.Work.Commented():
		b.WriteString("Somebody has commented on it. If it asks for no change, change nothing: it is answered with what you say when you finish. ")
	case len(pull.Checks) == 0 || len(pull.Summaries)+len(pull.Threads) > 0:
		b.WriteString("Reviewers asked for changes. ")
	}
	if len(pull.Checks) > 0 {
		b.WriteString("Checks of its last commit failed. Make them pass by removing the cause, never by skipping, weakening or deleting a check or a test.")
	}
	b.WriteString("\n" + quoteBy("pull request", Person{Login: pull.Author}, pull.Title+"\n\n"+pull.Body, longestComment))
	for _, check := range pull.Checks {
		b.WriteString("\n" + check.text())
	}
	type said struct {
		heading, source string
		comment         task.CommentEntry
	}
	var all []said
	for _, comment := range pull.Summaries {
		all = append(all, said{"", "review", comment})
	}
	for _, thread := range pull.Threads {
		heading := fmt.Sprintf("Review thread %s at %s line %d:\n", llm.QuoteLine(thread.ID), plainName(thread.Path), thread.Line)
		for _, comment := range thread.Comments {
			all = append(all, said{heading, "review comment", comment})
		}
	}
	in.shortened = in.whole // each of them asks for something
	for _, text := range in.fitted(len(all), func(i, most int) string { return all[i].heading + quoteComment(all[i].source, all[i].comment, most) }) {
		b.WriteString("\n" + text)
	}
	return b.String()
}

// longestExcerpt bounds what the model is shown of the log of a check, in bytes.
const longestExcerpt = 12 << 10

// text is a failed check with the part of its log that tells why.
func (c FailedCheck) text() string {
	said := textfmt.OneLine(c.Name) + "\n" + textfmt.OneLine(c.Description)
	if c.Log == "" {
		said += "\nIts log is not available."
	} else {
		said += "\nFrom its log:\n" + environment.Excerpt([]byte(c.Log), longestExcerpt)
	}
	return llm.Quote(llm.Origin{Source: "failed check"}, tool.Printable(said))
}

func quoteBy(source string, author Person, text string, most int) string {
	return llm.Quote(llm.Origin{Source: source, Author: author.Login, Access: author.Access}, tool.Shorten(tool.Printable(text), most))
}

// plainName is a file's name on one line.
func plainName(name string) string {
	if strconv.CanBackquote(name) && tool.Printable(name) == name {
		return name
	}
	return strconv.Quote(name)
}

// fileList is the list of files, as far as it has room.
func (p *project) fileList() string {
	var b strings.Builder
	for _, name := range p.files[:min(len(p.files), listedFiles)] {
		b.WriteString(plainName(name) + "\n")
	}
	if more := len(p.files) - listedFiles; more > 0 {
		fmt.Fprintf(&b, "and %d more\n", more)
	}
	if len(p.files) == 0 {
		return "The project has no files yet."
	}
	return llm.Quote(llm.Origin{Source: "file list"}, b.String())
}

// environmentText is what was detected, with a summary of the files' contents.
func (p *project) environmentText() string {
	summary := map[string]any{
		"environment_type": p.detection.EnvironmentType, "reason": p.detection.Reason, "directory": p.detection.Directory,
		"package_manager": p.detection.PackageManager, "language_version": p.detection.LanguageVersion,
		"dependencies": p.detection.Dependencies[:min(len(p.detection.Dependencies), 100)], "setup_commands": p.detection.SetupCommands,
		"test_command": p.detection.TestCommand, "build_command": p.detection.BuildCommand, "guess": p.detection.Guess, "projects": p.projectNames(), "detected_files": slices.Sorted(maps.Keys(p.detection.DetectedFiles)), "warnings": p.detection.Warnings,
	}
	data, err := json.MarshalIndent(summary, "", "  ")
	if err != nil {
		data = []byte(p.detection.EnvironmentType)
	}
	return strings.TrimRight("What was detected:\n"+llm.Quote(llm.Origin{Source: "detection"}, string(data))+"\n"+p.manifests(), "\n")
}

// manifests is a summary of the contents of the files that were detected.
func (p *project) manifests() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(p.detection.DetectedFiles)) {
		content := tool.Shorten(tool.Printable(p.detection.DetectedFiles[name]), shownManifest)
		parts = append(parts, llm.Quote(llm.Origin{Source: "file " + name}, content))
	}
	return strings.Join(parts, "\n")
}

// projectNames are the projects of the repository, by folder and environment.
func (p *project) projectNames() []map[string]string {
	names := []map[string]string{}
	for _, one := range p.detection.Projects {
		names = append(names, map[string]string{"directory": one.Directory, "environment_type": one.EnvironmentType, "test_command": one.TestCommand})
	}
	return names
}

// withoutContents is the detection for the selection prompt: the contents are
// shown beside it, marked as what they are.
func (p *project) withoutContents() environment.Detection {
	detection := p.detection
	detection.DetectedFiles = make(map[string]string, len(p.detection.DetectedFiles))
	for name, content := range p.detection.DetectedFiles {
		detection.DetectedFiles[name] = fmt.Sprintf("%d bytes, shown above", len(content))
	}
	return detection
}

// blocks are the pinned blocks with which a conversation about the request
// begins. Empty ones are left out.
func (r *run) blocks(of task.Phase, more ...conversation.Block) []conversation.Block {
	in := r.commentRoom(of)
	all := []conversation.Block{r.withImages(conversation.Block{Name: "request", Text: r.requestText(in)})}
	if len(r.state.newComments) > 0 {
		all = append(all, r.withImages(conversation.Block{Name: earlierComments, Text: commentsHeading + "\n\n" + in.describeAll(r.state.newComments)}))
	}
	all = append(all, conversation.Block{Name: "rules", Text: r.project.rules})
	if of == task.Planning || of == task.Execution {
		all = append(all, conversation.Block{Name: "review_notes", Text: r.Work.Notes})
	}
	return slices.DeleteFunc(append(all, more...), func(b conversation.Block) bool { return strings.TrimSpace(b.Text) == "" })
}
