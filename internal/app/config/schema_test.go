package config

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toryo-dev/toryo/internal/task"
)

func TestTheSpecificationsDefaults(t *testing.T) {
	t.Parallel()
	c := Default()
	if c.CommentDetection != (CommentDetection{true, 1, "write_or_author", true}) || c.TaskStop != (TaskStop{true}) || c.PauseResume != (PauseResume{true, 30, 24 * time.Hour}) {
		t.Errorf("signals: %+v %+v %+v", c.CommentDetection, c.TaskStop, c.PauseResume)
	}
	if c.Language != "auto" || c.ContextsDir != "contexts" || c.CommandExecutor.DefaultEnvironment != "python" {
		t.Errorf("language %q, contexts_dir %q, default_environment %q", c.Language, c.ContextsDir, c.CommandExecutor.DefaultEnvironment)
	}
	for _, name := range []string{"python", "miniforge", "node", "java", "go"} {
		if c.CommandExecutor.Environments[name] == "" {
			t.Errorf("environment %s has no image", name)
		}
	}
	if diff := cmp.Diff(Review{Delay: 30 * time.Minute, Label: "needs-review", OwnPulls: true, FixUpOn: []string{"mentions"}, MaxRounds: 3}, c.Review); diff != "" || c.MaxAttempts != 3 || c.ContextStorage != (ContextStorage{0.7, 5}) {
		t.Errorf("review %+v, max_attempts %d, context_storage %+v", c.Review, c.MaxAttempts, c.ContextStorage)
	}
	if c.Sandbox.Kind != "auto" || c.Sandbox.Network.Setup != "registries" || c.Sandbox.Network.Execution != "none" || !c.LLM.FunctionCalling || c.Budget != (Budget{}) {
		t.Errorf("sandbox %+v, llm %+v, budget %+v", c.Sandbox, c.LLM, c.Budget)
	}
	for _, forge := range []task.Forge{task.GitHub, task.GitLab, task.Gitea} {
		if diff := cmp.Diff(task.DefaultLabelNames(), c.LabelNames(forge)); diff != "" {
			t.Errorf("labels of %s (-want +got):\n%s", forge, diff)
		}
	}
}

func TestNoTwoKeysShareAVariable(t *testing.T) {
	t.Parallel()
	s := keys()
	seen := make(map[string]string)
	for _, k := range s.keys {
		if other := seen[k.variable()]; other != "" {
			t.Errorf("%s and %s are both %s", other, k.path, k.variable())
		}
		seen[k.variable()] = k.path
	}
	// An open section takes every variable that begins like it.
	for path, at := range s.sections {
		for _, k := range s.keys {
			if at.entries != nil && k.entry == "" && strings.HasPrefix(k.variable(), Variable(path)+"_") {
				t.Errorf("%s could be an entry of %s", k.variable(), path)
			}
		}
	}
}

func TestTheTagsAreComplete(t *testing.T) {
	t.Parallel()
	s := keys()
	name := regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
	for path, at := range s.sections {
		if path != "" && (!name.MatchString(at.name) && at.name != entryPlaceholder || at.about == "") {
			t.Errorf("section %q lacks a name or a description", path)
		}
		if at.entries != nil && (nameRules[at.entries.names] == nil || at.entries.section != nil && at.entries.checkName(at.entries.example) != nil) {
			t.Errorf("section %q lacks a rule for names or an example", path)
		}
		var names []string
		for _, m := range at.members {
			if slices.Contains(names, m.name()) {
				t.Errorf("section %q has %s twice", path, m.name())
			}
			names = append(names, m.name())
		}
	}
	for _, k := range slices.Concat(s.keys, s.inEntry) {
		if !name.MatchString(k.name) {
			t.Errorf("%s: bad name", k.path)
		}
		if k.entry == "" && (!strings.HasSuffix(k.about, ".") || strings.Contains(k.about, "\n")) {
			t.Errorf("%s: the description is not one sentence: %q", k.path, k.about)
		}
		if _, known := formats[k.format]; k.format != "" && !known {
			t.Errorf("%s: unknown format %q", k.path, k.format)
		}
		if k.kind == secretKind && (k.fileKey() == nil || k.fallback != "") {
			t.Errorf("%s: a secret needs a *_file key and no default", k.path)
		}
		if k.lines && k.kind != secretKind {
			t.Errorf("%s: only secrets have several lines", k.path)
		}
	}
}

var commentedKey = regexp.MustCompile(`(?m)^( *)#([a-z])`)

// uncommented removes the # of every key.
func uncommented(text string) string { return commentedKey.ReplaceAllString(text, "$1$2") }

// example is an entry that the template shows.
type example struct {
	section *section
	block   string // as it stands in the template
	indent  string // of the block
}

// keys is the entry with its first # removed, as a person does who wants it.
func (e example) keys() string {
	return strings.ReplaceAll("\n"+e.block, "\n"+e.indent+"#", "\n"+e.indent)[1:]
}

// examples finds every example of the template, and gives the template without.
func examples(t *testing.T) (all []example, rest string) {
	t.Helper()
	rest = string(Template())
	for _, s := range keys().sections {
		if s.entries == nil || s.entries.section == nil {
			continue
		}
		indent := strings.Repeat("  ", strings.Count(s.path, ".")+1)
		block := regexp.MustCompile(`(?m)^` + indent + `#` + s.entries.example + `:\n(` + indent + `#(  .*)?\n)*`).FindString(rest)
		if block == "" {
			t.Fatalf("%s has no example", s.path)
		}
		all = append(all, example{s, block, indent})
		rest = strings.Replace(rest, block, "", 1)
	}
	return all, rest
}

// parseExample parses a template in which the file of the example of a webhook is one that there
// is.
func parseExample(t *testing.T, file, text string) (Config, Report) {
	t.Helper()
	return parse("toryo.yaml", []byte(strings.ReplaceAll(text, "/run/secrets/slack-webhook", file)), nil, nil)
}

// webhookFile is a file with the address of a webhook.
func webhookFile(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "webhook")
	if err := os.WriteFile(file, []byte("https://hooks.example.com/x"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestTheTemplateSaysTheSameAsNoFile(t *testing.T) {
	t.Parallel()
	_, text := examples(t)
	if uncommented(text) == text {
		t.Fatal("nothing is commented out")
	}
	for name, text := range map[string]string{"as it is": string(Template()), "all uncommented": uncommented(text)} {
		got, report := parse("toryo.yaml", []byte(text), nil, nil)
		if len(report.Problems)+len(report.Warnings) > 0 {
			t.Errorf("%s: %v %v", name, lines(report.Problems), lines(report.Warnings))
		}
		want := Default()
		want.LLM.OwnPrices = name == "all uncommented" // prices of 0 that are written down are set
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-defaults +got):\n%s", name, diff)
		}
	}
	_, report := parse("toryo.yaml", []byte(uncommented(text)), nil, nil)
	for _, k := range keys().keys {
		// A value that may be missing is there without one: that is not set.
		if k.kind != secretKind && !k.maybe && report.Origin(k.path).IsDefault() {
			t.Errorf("%s is not in the template", k.path)
		}
		if !strings.Contains(text, k.name) || k.kind == secretKind && !strings.Contains(text, k.variable()) {
			t.Errorf("%s is not mentioned in the template", k.path)
		}
	}
}

func TestTheExamplesOfTheTemplateAreRightAndWhole(t *testing.T) {
	t.Parallel()
	all, _ := examples(t)
	file := webhookFile(t)
	if len(all) < 3 {
		t.Fatalf("only %d examples", len(all))
	}
	for _, e := range all {
		for name, block := range map[string]string{"as it is": e.keys(), "all uncommented": uncommented(e.keys())} {
			text := strings.Replace(string(Template()), e.block, block, 1)
			config, report := parseExample(t, file, text)
			if len(report.Problems)+len(report.Warnings) > 0 {
				t.Errorf("%s, %s: %v %v", e.section.path, name, lines(report.Problems), lines(report.Warnings))
			}
			if diff := cmp.Diff([]string{e.section.entries.example}, e.section.entryNames(&config)); diff != "" {
				t.Errorf("%s, %s (-want +got):\n%s", e.section.path, name, diff)
			}
			for _, m := range e.section.entrySection(e.section.entries.example).members {
				set := m.key == nil || m.key.kind == secretKind || m.key.maybe || m.as != "" || !report.Origin(m.key.path).IsDefault()
				if !strings.Contains(block, m.name()) && (m.key == nil || m.key.kind != secretKind) || name == "all uncommented" && !set {
					t.Errorf("%s is not in the example of %s", m.name(), e.section.path)
				}
			}
		}
		if !regexp.MustCompile(`(?m)Environment\s(# )?variables`).MatchString(before(t, e.block)) {
			t.Errorf("%s does not say that variables do not reach into it", e.section.path)
		}
	}
}

// before is the comment above an example.
func before(t *testing.T, block string) string {
	t.Helper()
	text, _, found := strings.Cut(string(Template()), block)
	if !found {
		t.Fatal("no such example")
	}
	return text[strings.LastIndex(text, "\n\n"):]
}

func TestEveryKeyOfTheTemplateCanBeUncommentedAlone(t *testing.T) {
	t.Parallel()
	all, text := examples(t)
	file := webhookFile(t)
	texts := []string{text}
	for _, e := range all {
		_, above, _ := strings.Cut(text, "\n"+e.indent[2:]+e.section.name+":\n")
		rest := strings.TrimSuffix(text, above)
		texts = append(texts, rest+e.keys()+above)
	}
	for _, text := range texts {
		for _, at := range commentedKey.FindAllStringIndex(text, -1) {
			alone := text[:at[1]-2] + text[at[1]-1:]
			if _, report := parseExample(t, file, alone); len(report.Problems)+len(report.Warnings) > 0 {
				t.Errorf("%v %v", lines(report.Problems), lines(report.Warnings))
			}
		}
	}
}

func TestTheTemplateNamesEveryPhase(t *testing.T) {
	t.Parallel()
	about := keys().sections["llm_overrides"].about
	for _, name := range reservedNames() {
		if !strings.Contains(about, name) {
			t.Errorf("%s is not mentioned: %s", name, about)
		}
	}
}

func TestTheTemplateIsPleasant(t *testing.T) {
	t.Parallel()
	for i, line := range strings.Split(string(Template()), "\n") {
		if len(line) > templateWidth || strings.TrimRight(line, " \t") != line || strings.Contains(line, "\t") {
			t.Errorf("line %d is too long or ends in white space: %q", i+1, line)
		}
	}
	for _, active := range []string{"\nlanguage: auto\n", "\n  addr: 127.0.0.1:8750\n", "\n  check_interval: 1\n"} {
		if !strings.Contains(string(Template()), active) {
			t.Errorf("%q is not active", active)
		}
	}
}

// What leads to changes is a list of known names, which may be empty.
func TestFixUpOn(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"review: {fix_up_on: []}":                          nil,
		"review: {fix_up_on: [review_comments, mentions]}": {"review_comments", "mentions"},
		"review: {delay: 1h}":                              {"mentions"},
	} {
		c, report := parse("toryo.yaml", []byte(text), nil, nil)
		if diff := cmp.Diff(want, append([]string(nil), c.Review.FixUpOn...)); diff != "" || len(report.Problems) > 0 {
			t.Errorf("%s: %s %v", text, diff, report.Problems)
		}
	}
	if _, report := parse("toryo.yaml", []byte("review: {fix_up_on: [everything]}"), nil, nil); len(report.Problems) != 1 {
		t.Errorf("a name that is not known: %v", report.Problems)
	}
}
