package config

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toryo-dev/toryo/internal/task"
)

func TestTheSpecificationsDefaults(t *testing.T) {
	t.Parallel()
	c := Default()
	if c.CommentDetection != (CommentDetection{true, 1}) || c.TaskStop != (TaskStop{true, 1}) || c.PauseResume != (PauseResume{true, 1, 30}) {
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
			if at.open != nil && k.entry == "" && strings.HasPrefix(k.variable(), Variable(path)+"_") {
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
		if path != "" && (!name.MatchString(at.name) || at.about == "") {
			t.Errorf("section %q lacks a name or a description", path)
		}
		var names []string
		for _, m := range at.members {
			if slices.Contains(names, m.name()) {
				t.Errorf("section %q has %s twice", path, m.name())
			}
			names = append(names, m.name())
		}
	}
	for _, k := range s.keys {
		if !name.MatchString(k.name) {
			t.Errorf("%s: bad name", k.path)
		}
		if k.entry == "" && (!strings.HasSuffix(k.about, ".") || strings.Contains(k.about, "\n")) {
			t.Errorf("%s: the description is not one sentence: %q", k.path, k.about)
		}
		if _, known := formats[k.format]; k.format != "" && !known {
			t.Errorf("%s: unknown format %q", k.path, k.format)
		}
		if k.kind == secretKind && (s.fileKey(k) == nil || k.fallback != "") {
			t.Errorf("%s: a secret needs a *_file key and no default", k.path)
		}
	}
}

var commentedKey = regexp.MustCompile(`(?m)^( *)#([a-z])`)

func TestTheTemplateSaysTheSameAsNoFile(t *testing.T) {
	t.Parallel()
	uncommented := commentedKey.ReplaceAllString(string(Template()), "$1$2")
	if uncommented == string(Template()) {
		t.Fatal("nothing is commented out")
	}
	for name, text := range map[string]string{"as it is": string(Template()), "all uncommented": uncommented} {
		got, report := parse("toryo.yaml", []byte(text), nil, nil)
		if len(report.Problems)+len(report.Warnings) > 0 {
			t.Errorf("%s: %v %v", name, lines(report.Problems), lines(report.Warnings))
		}
		if diff := cmp.Diff(Default(), got); diff != "" {
			t.Errorf("%s (-defaults +got):\n%s", name, diff)
		}
	}
	_, report := parse("toryo.yaml", []byte(uncommented), nil, nil)
	for _, k := range keys().keys {
		// A value that may be missing is there without one: that is not set.
		if k.kind != secretKind && !k.maybe && report.Origin(k.path).IsDefault() {
			t.Errorf("%s is not in the template", k.path)
		}
		if !strings.Contains(string(Template()), k.name) || k.kind == secretKind && !strings.Contains(string(Template()), k.variable()) {
			t.Errorf("%s is not mentioned in the template", k.path)
		}
	}
}

func TestEveryKeyOfTheTemplateCanBeUncommentedAlone(t *testing.T) {
	t.Parallel()
	template := string(Template())
	for _, at := range commentedKey.FindAllStringIndex(template, -1) {
		text := template[:at[1]-2] + template[at[1]-1:]
		if _, report := parse("toryo.yaml", []byte(text), nil, nil); len(report.Problems)+len(report.Warnings) > 0 {
			t.Errorf("%v %v", lines(report.Problems), lines(report.Warnings))
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
