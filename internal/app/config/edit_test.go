package config

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/toryo-dev/toryo/internal/task"
)

func TestEdit(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		before  string
		changes Changes
		want    string
	}{
		"an empty file": {
			changes: Changes{Set: map[string]string{"gitea.url": "https://git.example.com", "gitea.owner": "team", "data_dir": "/var/lib/toryo"}},
			want:    "data_dir: /var/lib/toryo\n\ngitea:\n  url: https://git.example.com\n  owner: team\n",
		},
		"a key that is there keeps its line and its comment": {
			before:  "# mine\ngitea:\n    owner: 'old' # of last year\n    url: https://a.example\n# end",
			changes: Changes{Set: map[string]string{"gitea.owner": "new"}},
			want:    "# mine\ngitea:\n    owner: new # of last year\n    url: https://a.example\n# end",
		},
		"a new key goes to the end of its section": {
			before:  "gitea:\n  url: https://a.example\n\n  # about the log\nlog:\n  level: warn\n",
			changes: Changes{Set: map[string]string{"gitea.bot_name": "bot"}},
			want:    "gitea:\n  url: https://a.example\n  bot_name: bot\n\n  # about the log\nlog:\n  level: warn\n",
		},
		"a new key goes below its default": {
			before:  "gitea:\n  # Address of the forge.\n  #url: \"\"\n  # Owner.\n  #owner: \"\"\nlog:\n",
			changes: Changes{Set: map[string]string{"gitea.url": "https://a.example"}},
			want:    "gitea:\n  # Address of the forge.\n  #url: \"\"\n  url: https://a.example\n  # Owner.\n  #owner: \"\"\nlog:\n",
		},
		"a list in lines becomes a list in brackets": {
			before:  "gitlab:\n  projects:\n  - a/b\n  # gone\n  - c/d\n  bot_name: x\n",
			changes: Changes{Set: map[string]string{"gitlab.projects": "a/b,e/f.g"}},
			want:    "gitlab:\n  projects: [a/b, e/f.g]\n  bot_name: x\n",
		},
		"a list that is the same stays as it is": {
			before:  "gitlab:\n  projects:\n  - a/b\n  - c/d\n",
			changes: Changes{Set: map[string]string{"gitlab.projects": "a/b,c/d"}},
			want:    "gitlab:\n  projects:\n  - a/b\n  - c/d\n",
		},
		"line ends of Windows": {
			before:  "log:\r\n  level: info\r\n",
			changes: Changes{Set: map[string]string{"log.level": "warn", "gitea.owner": "t"}},
			want:    "log:\r\n  level: warn\r\n\r\ngitea:\r\n  owner: t\r\n",
		},
		"no line end at the end": {
			before:  "log:\n  level: info",
			changes: Changes{Set: map[string]string{"log.format": "json"}},
			want:    "log:\n  level: info\n  format: json\n",
		},
		"what looks like a number or nothing is in quotes": {
			changes: Changes{Set: map[string]string{"llm.model": "null", "gitea.owner": "1e3", "gitea.bot_name": "o'x#y"}},
			want:    "gitea:\n  owner: \"1e3\"\n  bot_name: \"o'x#y\"\n\nllm:\n  model: \"null\"\n",
		},
		"keys go, and sections that are empty then": {
			before:  "log:\n  level: info\n\ngitea:\n  url: https://a.example\n\nllm:\n  model: m\n",
			changes: Changes{Remove: []string{"gitea.url", "llm.model", "gitea", "llm", "log"}},
			want:    "log:\n  level: info\n",
		},
		"a section with comments stays": {
			before:  "gitea:\n  url: https://a.example\n  # owner: x\n",
			changes: Changes{Remove: []string{"gitea.url", "gitea"}},
			want:    "gitea:\n  # owner: x\n",
		},
		"what was there is restored": {
			before:  "gitlab:\n  projects: [x/y]\n",
			changes: Changes{Restore: map[string]string{"gitlab.projects": " # two\n  - 'a/b'\n  - c/d"}},
			want:    "gitlab:\n  projects: # two\n  - 'a/b'\n  - c/d\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := Edit([]byte(test.before), test.changes)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, string(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A file that lines do not show stays as it is, and the error says what to write.
func TestEditRefuses(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		before, path, value string
		want                string // in the error
		code                task.Code
	}{
		"braces":      {"gitea: {url: https://a.example}\n", "gitea.owner", "team", "set gitea.owner: team by hand", task.Conflict},
		"an alias":    {"github: &g\n  owner: a\ngitea: *g\n", "gitea.owner", "team", "by hand", task.Conflict},
		"null":        {"gitea: ~\n", "gitea.owner", "team", "by hand", task.Conflict},
		"an anchor":   {"github:\n  owner: &o a\ngitea:\n  owner: *o\n", "github.owner", "b", "by hand", task.Conflict},
		"broken YAML": {"gitea: [\n", "gitea.owner", "team", "line", task.BadConfig},
		"a secret":    {"", "gitea.token", "s3cr3t", "token_file", task.Invalid},
		"a bad value": {"", "gitea.url", "no address", "http", task.Invalid},
		"the end":     {"log:\n  level: info\n...\n", "gitea.owner", "team", "by hand", task.Conflict},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := Edit([]byte(test.before), Changes{Set: map[string]string{test.path: test.value}})
			if got != nil || err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "s3cr3t") {
				t.Fatalf("got %q, %v", got, err)
			}
			if code := task.CodeOf(err); code != test.code {
				t.Errorf("the code is %s, want %s", code, test.code)
			}
		})
	}
}

// What comes from elsewhere in the file cannot be taken out, and what does not fit where it was
// cannot be restored: nothing is changed then, and the error names the key.
func TestEditRefusesToTakeBack(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		before  string
		changes Changes
	}{
		"a merged key": {
			before:  "github: &g\n  owner: a\ngitea:\n  <<: *g\n  url: https://a.example\n",
			changes: Changes{Remove: []string{"gitea.owner"}},
		},
		"a list that is indented less than its key": {
			before:  "gitlab:\n    bot_name: x\n",
			changes: Changes{Restore: map[string]string{"gitlab.projects": "\n  - a/b"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := Edit([]byte(test.before), test.changes)
			if got != nil || task.CodeOf(err) != task.Conflict || !strings.Contains(err.Error(), "by hand") {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

// The file that "toryo config init" writes can be edited, says what was set, and is the same
// again when that is taken out.
func TestEditTheTemplate(t *testing.T) {
	t.Parallel()
	set := map[string]string{
		"gitea.url": "https://git.example.com", "gitea.owner": "team", "gitea.bot_name": "bot", "gitea.token_file": "data/secrets/gitea-token",
		"gitlab.projects": "a/b,c/d", "server.public_url": "https://toryo.example.com", "llm.api_key_file": "key", "data_dir": "/srv/toryo",
	}
	edited, err := Edit(Template(), Changes{Set: set})
	if err != nil {
		t.Fatal(err)
	}
	if added := strings.Count(string(edited), "\n") - strings.Count(string(Template()), "\n"); added != len(set)-1 {
		t.Errorf("%d lines were added for %d keys, of which one was there", added, len(set))
	}
	c, _ := LoadText("", edited, nil, nil)
	if c.Gitea.Owner != "team" || len(c.GitLab.Projects) != 2 || c.DataDir != "/srv/toryo" || c.Server.PublicURL != "https://toryo.example.com" {
		t.Errorf("the file says %+v", c.Gitea)
	}
	var remove []string
	for path := range set {
		if path != "data_dir" {
			remove = append(remove, path)
		}
	}
	again, err := Edit(edited, Changes{Restore: map[string]string{"data_dir": " data"}, Remove: remove})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(Template()), string(again)); diff != "" {
		t.Error(diff)
	}
}

// Whatever a file of lines looks like: the keys that were set have their values, setting
// them again changes nothing, and taking back what was done gives the same bytes.
func TestEditCanBeTakenBack(t *testing.T) {
	t.Parallel()
	values := map[string][]string{
		"gitea.url": {"https://a.example", "http://127.0.0.1:3000/git"}, "gitea.owner": {"team", "123", "no", "a.b-c"}, "gitea.bot_name": {"bot"},
		"gitlab.projects": {"a/b", "a/b,c/d,e/f.g"}, "llm.model": {"m:1", "a#b", "\"q\""}, "llm.max_tokens": {"100"},
		"server.public_url": {"https://t.example"}, "sandbox.kind": {"docker"}, "data_dir": {"x", "/y z"}, "language": {"ja"},
	}
	var paths []string
	for path := range values {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	rapid.Check(t, func(t *rapid.T) {
		before := drawFile(t)
		changes := Changes{Set: map[string]string{}}
		for _, path := range rapid.SliceOfDistinct(rapid.SampledFrom(paths), rapid.ID[string]).Draw(t, "keys") {
			changes.Set[path] = rapid.SampledFrom(values[path]).Draw(t, path)
		}
		edited, err := Edit([]byte(before), changes)
		if err != nil {
			t.Fatalf("%v\n%s", err, before)
		}
		undo := Changes{Restore: map[string]string{}}
		for path, want := range changes.Set {
			e, err := newEditor(edited)
			if err != nil {
				t.Fatal(err)
			}
			value, found := e.value(keys().byPath[path])
			if !found || shown(value) != want {
				t.Fatalf("%s is %v, want %s\n%s", path, value, want, edited)
			}
			raw, had, err := Written([]byte(before), path)
			if err != nil {
				t.Fatal(err)
			}
			if had {
				undo.Restore[path] = raw
			} else {
				undo.Remove = append(undo.Remove, path)
			}
		}
		for _, section := range []string{"gitea", "gitlab", "llm", "server", "sandbox"} {
			if _, had, _ := Written([]byte(before), section); !had {
				undo.Remove = append(undo.Remove, section)
			}
		}
		if again, err := Edit(edited, changes); err != nil || !bytes.Equal(again, edited) {
			t.Fatalf("setting the same again: %v\n%s", err, cmp.Diff(string(edited), string(again)))
		}
		if back, err := Edit(edited, undo); err != nil || string(back) != before {
			t.Fatalf("taking it back: %v\n%s\nafter:\n%s", err, cmp.Diff(before, string(back)), edited)
		}
	})
}

// drawFile makes a configuration as people write them.
func drawFile(t *rapid.T) string {
	var text strings.Builder
	end := rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "line end")
	line := func(words string) { text.WriteString(words + end) }
	comment := func(indent string) {
		switch rapid.IntRange(0, 4).Draw(t, "comment") {
		case 0:
			line(indent + "# about what follows: this")
		case 1:
			line("")
		}
	}
	keysOf := map[string][]string{
		"gitea":   {"url: 'https://old.example' # until May", "owner: old", "#owner: \"\"", "bot_name: \"b\"", "# bot_name: \"\""},
		"gitlab":  {"projects:\n%s- x/y\n%s- z/w # last", "projects: ['x/y', z/w]  # two", "bot_name: g", "#projects: []"},
		"llm":     {"model: old", "max_tokens: 5 # few", "prices:\n%s  input: 1\n\n%s  output: 2"},
		"log":     {"level: warn", "format: text"},
		"sandbox": {"kind: auto", "network:\n%s  hosts:\n%s    - a.example"},
	}
	if rapid.Bool().Draw(t, "a key at the top") {
		comment("")
		line("data_dir: data # here")
	}
	for _, section := range rapid.Permutation([]string{"gitea", "gitlab", "llm", "log", "sandbox"}).Draw(t, "sections")[:rapid.IntRange(0, 5).Draw(t, "count")] {
		comment("")
		line(section + ":")
		indent := strings.Repeat(" ", rapid.IntRange(1, 4).Draw(t, "indent"))
		seen := map[string]bool{}
		for _, words := range rapid.Permutation(keysOf[section]).Draw(t, section) {
			name, _, _ := strings.Cut(words, ":")
			if seen[name] || rapid.Bool().Draw(t, "leave out") {
				continue
			}
			seen[name] = true
			comment(indent)
			line(indent + strings.ReplaceAll(strings.ReplaceAll(words, "%s", indent), "\n", end))
		}
	}
	return text.String()
}
