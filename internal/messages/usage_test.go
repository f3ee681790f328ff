package messages

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// takesKey are the functions that are given a key, and at which argument. What is
// behind the key is put into its text, but not by those of others. A new function that takes
// a key has to be named here, or the arguments of its calls are not counted.
var (
	takesKey = map[string]int{"Text": 1, "Find": 1, "text": 0, "t": 0, "textOr": 0, "remark": 0, "list": 0, "when": 0, "paragraphs": 1, "navLink": 2}
	others   = []string{"Find", "textOr", "list", "when", "paragraphs", "navLink"}
)

// built are the beginnings of keys that the program builds, with what it puts behind:
// the constants of a type, or the codes themselves.
var built = map[string][]string{
	"agents.state_":      {"working", "idle", "unable", "offline", "revoked"},
	"block.":             {"request", "rules", "earlier", "files", "environment", "environment_setup", "references", "understanding", "plan", "todo", "facts", "summary", "diff", "last_steps", "comments", "review_notes"},
	"citation.":          {"review.CitationState"},
	"connect.from.":      {"file", "variable", "app", "none"},
	"connect.hook.":      {"good", "none", "off", "events", "failed", "hidden", "app", "unknown"},
	"connect.needs.":     {"github", "gitlab", "gitea"},
	"connect.right.":     {"forge.Right"},
	"connect.state.":     {"forge.RightState"},
	"connect.step.":      {"done", "unchanged", "left_out"},
	"event.":             {"store.BoardEventKind"},
	"finding.":           {"task.FindingKind"},
	"fix.":               {"task.Reason"},
	"item.":              {"forge.ItemState"},
	"judge.field_":       {"strengths", "weaknesses", "important_points", "future_considerations"},
	"judge.verdict_":     {"forge.Verdict"},
	"judgement.":         {"strengths", "weaknesses", "important_points", "future_considerations"},
	"kind.":              {"task.EventKind"},
	"ledger.":            {"new", "edited", "deleted"}, // not "present", which no run is told of
	"list.refused_":      {"gone", "pause", "approval", "unwanted", "done", "error", "mixed"},
	"list.sort_":         {"-number", "number", "title", "author", "login", "-login", "role", "repository", "-last"},
	"memory.ending.":     {"store.NoteEnding"},
	"needs.kind_":        {"task.NeedKind"},
	"notice.heading_":    {"task.State"},
	"notice.late_":       {"task.CommentKind", "new", "edited", "deleted"},
	"now.":               {"calling", "preparing", "publishing", "setting_up", "thinking", "verifying"},
	"phase.":             {"task.Phase"},
	"problem.":           {"task.Code"},
	"progress.phase_":    {"active", "completed", "failed"},
	"queue.bulk_":        {"pause", "resume", "retry", "stop"},
	"readiness.":         {"database", "data_folder", "notifications"},
	"reason.":            {"task.Reason"},
	"review.choose_":     {"forge.Verdict"},
	"role.":              {"access.Role"},
	"run.found_":         {"not_run", "skipped", "rewritten", "no_report", "fails_as_before", "flaky", "build_file", "still_fails", "nothing_shown", "beyond_merge", "branch_lost", "push_lost", "tests_lost"},
	"signal.":            {"task.Signal"},
	"signed.result.":     {"PASSED", "WARNED", "FAILED"},
	"state.":             {"task.State"},
	"statistics.column.": {"done", "failed", "stopped", "paused", "returned", "right", "corrected", "failed_first", "right_share", "opened", "taken", "median", "p90", "no_rounds", "one_round", "two_rounds", "more_rounds", "rounds_average", "busy_average", "busy_time"},
	"statistics.means.":  {"runs", "first_attempts", "pull_requests", "review_rounds", "queue_wait", "agents_busy", "cost"},
	"statistics.title.":  {"runs", "first_attempts", "pull_requests", "review_rounds", "queue_wait", "agents_busy", "cost"},
	"status.":            {"active", "completed", "failed", "paused", "skipped", "stopped", "waiting"},
	"task.":              {"pause", "pause_sure", "resume", "resume_sure", "retry", "retry_sure", "stop", "stop_sure"},
	"task.tab.":          {"conversation", "changes", "checks", "cost"},
	"theme.":             {"", "light", "dark"},
	"type.":              {"task.Type"},
	"verdict.":           {"forge.Verdict"},
	"webhooks.state.":    {"none", "trusted", "lapsed", "missed"},
}

// partly are those that do not have a text for each code.
var partly = []string{"fix.", "kind.", "notice.heading_", "problem."}

// Every key that the program uses is there, is given as much as its text has verbs,
// and no text is there that the program does not use.
func TestKeysAreThoseOfTheProgram(t *testing.T) {
	t.Parallel()
	s := readSource(t)
	for _, wrong := range s.check(english()) {
		t.Error(wrong)
	}
}

func TestWrongKeysAreFound(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		code  string
		wrong string
	}{
		"right":              {`messages.Text(in, "a.used", 1); v.t("a.plain")`, ""},
		"no such key":        {`messages.Text(in, "a.used", 1); v.t("a.plain"); v.t("a.missing")`, "there is no text a.missing"},
		"fewer arguments":    {`messages.Text(in, "a.used"); v.t("a.plain")`, "a.used is given 0 arguments"},
		"unused":             {`messages.Text(in, "a.used", 1)`, "a.plain is not used"},
		"unknown beginnings": {`messages.Text(in, "a.used", 1); v.t("a.plain"); v.t("a." + code)`, "keys that begin with a. are built"},
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "a.go", "package a; func f() { "+test.code+" }", 0)
		if err != nil {
			t.Fatal(err)
		}
		s := newSource()
		s.readUses(file)
		wrong := s.check(map[string]string{"a.used": "%d", "a.plain": "plain"})
		// The module's own keys that are built are not there.
		wrong = slices.DeleteFunc(wrong, func(text string) bool { return strings.Contains(text, "nothing builds") })
		if got := strings.Join(wrong, "\n"); test.wrong == "" && got != "" || !strings.Contains(got, test.wrong) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// source is what the code says about keys.
type source struct {
	files     *token.FileSet
	literals  map[string]bool
	built     map[string]bool // the texts that something is put behind
	calls     []call
	constants map[string][]string // values by package and type
}

// call is one of a function that takes a key.
type call struct {
	key       string
	arguments int // -1 if nothing is put in
	at        token.Pos
}

func newSource() *source {
	return &source{files: token.NewFileSet(), literals: map[string]bool{}, built: map[string]bool{}, constants: map[string][]string{}}
}

// readSource reads the packages that use this one, and the constants of all. What is
// in templates is in the code that is generated from them.
func readSource(t *testing.T) *source {
	t.Helper()
	s := newSource()
	root := os.DirFS("..")
	folders := map[string][]*ast.File{}
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return err
		}
		content, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(s.files, name, content, parser.SkipObjectResolution)
		folders[path.Dir(name)] = append(folders[path.Dir(name)], file)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for folder, files := range folders {
		uses := folder == "messages" || slices.ContainsFunc(files, func(file *ast.File) bool {
			return slices.ContainsFunc(file.Imports, func(i *ast.ImportSpec) bool {
				return textOf(i.Path) == "github.com/toryo-dev/toryo/internal/messages"
			})
		})
		for _, file := range files {
			s.readConstants(folder, file)
			if uses {
				s.readUses(file)
			}
		}
	}
	return s
}

// textOf is what a literal says, or nothing if it is none.
func textOf(e ast.Expr) string {
	literal, is := e.(*ast.BasicLit)
	if !is || literal.Kind != token.STRING {
		return ""
	}
	text, err := strconv.Unquote(literal.Value)
	if err != nil {
		return ""
	}
	return text
}

func (s *source) readConstants(folder string, file *ast.File) {
	ast.Inspect(file, func(node ast.Node) bool {
		spec, is := node.(*ast.ValueSpec)
		if !is || len(spec.Values) == 0 || textOf(spec.Values[0]) == "" {
			return true
		}
		if kind, is := spec.Type.(*ast.Ident); is {
			name := folder + "." + kind.Name
			s.constants[name] = append(s.constants[name], textOf(spec.Values[0]))
		}
		return true
	})
}

func (s *source) readUses(file *ast.File) {
	ast.Inspect(file, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.BasicLit:
			s.literals[textOf(n)] = true
		case *ast.BinaryExpr:
			s.built[textOf(n.X)] = true
		case *ast.CallExpr:
			s.readCall(n)
		}
		return true
	})
}

func (s *source) readCall(c *ast.CallExpr) {
	var name string
	switch called := c.Fun.(type) {
	case *ast.Ident:
		name = called.Name
	case *ast.SelectorExpr:
		name = called.Sel.Name
	}
	at, takes := takesKey[name]
	if !takes || len(c.Args) <= at || textOf(c.Args[at]) == "" {
		return
	}
	one := call{textOf(c.Args[at]), len(c.Args) - at - 1, c.Pos()}
	if slices.Contains(others, name) || c.Ellipsis.IsValid() {
		one.arguments = -1
	}
	s.calls = append(s.calls, one)
}

// check says what is wrong with keys and texts.
func (s *source) check(texts map[string]string) []string {
	wrong := s.checkCalls(texts)
	used, missing := s.builtKeys(texts)
	wrong = append(wrong, missing...)
	for key := range texts {
		if !used[key] && !s.literals[key] {
			wrong = append(wrong, key+" is not used")
		}
		for prefix := range s.built {
			if _, known := built[prefix]; !known && strings.Contains(prefix, ".") && strings.HasPrefix(key, prefix) {
				wrong = append(wrong, fmt.Sprintf("keys that begin with %s are built, and the test does not know of what", prefix))
			}
		}
	}
	return wrong
}

func (s *source) checkCalls(texts map[string]string) []string {
	var wrong []string
	for _, c := range s.calls {
		text, found := texts[c.key]
		at, verbs := s.files.Position(c.at), len(verbsOf(text))
		switch {
		case !found:
			wrong = append(wrong, fmt.Sprintf("%s: there is no text %s", at, c.key))
		case c.arguments >= 0 && c.arguments != verbs:
			wrong = append(wrong, fmt.Sprintf("%s: %s is given %d arguments and has %d verbs", at, c.key, c.arguments, verbs))
		}
	}
	return wrong
}

// builtKeys are the keys that the program can build, and what is wrong with them.
func (s *source) builtKeys(texts map[string]string) (used map[string]bool, wrong []string) {
	used = make(map[string]bool)
	for prefix, sources := range built {
		if !s.built[prefix] {
			wrong = append(wrong, "nothing builds keys that begin with "+prefix)
			continue
		}
		for _, code := range s.codes(sources) {
			used[prefix+code] = true
			if texts[prefix+code] == "" && !slices.Contains(partly, prefix) {
				wrong = append(wrong, "there is no text "+prefix+code)
			}
		}
	}
	return used, wrong
}

// codes are the codes that sources stand for.
func (s *source) codes(sources []string) []string {
	var codes []string
	for _, one := range sources {
		if strings.Contains(one, ".") {
			codes = append(codes, s.constants[one]...)
		} else {
			codes = append(codes, one)
		}
	}
	return codes
}
