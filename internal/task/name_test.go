package task

import (
	"strings"
	"testing"
)

const nameID = "0199c2a4-1b2c-7d3e-8f40-112233445566"

func TestParseName(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Name{
		"gitea:team/app#3":              {Forge: Gitea, Repository: "team/app", Number: 3},
		"gitlab:a/b/c!4":                {Forge: GitLab, Repository: "a/b/c", Kind: Pull, Number: 4},
		"team/app#3":                    {Repository: "team/app", Number: 3},
		" team/app#3\n":                 {Repository: "team/app", Number: 3}, //nolint:gocritic // pasted with what is around it
		"#3":                            {Number: 3},
		"board:#3":                      {Forge: Board, Number: 3},
		"!4":                            {Kind: Pull, Number: 4},
		"0199":                          {ID: "0199"},
		"0199C2A4-1b":                   {ID: "0199c2a4-1b"},
		nameID:                          {ID: nameID},
		"http://x:8750/tasks/" + nameID: {ID: nameID},
		"https://x/tasks/" + nameID + "/?page=2#end":        {ID: nameID},
		"https://github.com/team/app/issues/3":              {Host: "github.com", Path: "team/app", Kind: Issue, Number: 3},
		"https://GitHub.com/team/app/pull/3/files#diff":     {Host: "github.com", Path: "team/app", Kind: Pull, Number: 3},
		"https://gitea.example.com/git/team/app/pulls/3":    {Host: "gitea.example.com", Path: "git/team/app", Kind: Pull, Number: 3},
		"https://gitlab.com/a/b/c/-/merge_requests/4/diffs": {Host: "gitlab.com", Path: "a/b/c", Kind: Pull, Number: 4},
		"https://gitlab.com/a/b/-/work_items/4":             {Host: "gitlab.com", Path: "a/b", Kind: Issue, Number: 4},
		"https://github.com/team/issues/issues/3":           {Host: "github.com", Path: "team/issues", Kind: Issue, Number: 3},
		"http://127.0.0.1:8750/board/team/app/issues/3":     {Forge: Board, Repository: "team/app", Kind: Issue, Number: 3},
		"https://gitlab.com/board/sub/app/-/issues/3":       {Host: "gitlab.com", Path: "board/sub/app", Kind: Issue, Number: 3},
	} {
		if got, err := ParseName(text); err != nil || got != want {
			t.Errorf("%q is %+v, %v; want %+v", text, got, err, want)
		}
	}
}

func TestWhatNamesNoTask(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", " ", "3", "019", "app#3", "team/app", "team/app#", "team/app#0", "team/app#-1", "team/app#x", "svn:team/app#3", "../../x#3", "#99999999999999999999",
		"team/app#3 and more", "https://github.com/team/app", "https://github.com/issues/3", "https://x/tasks/123", "ftp://x/team/app/issues/3", "\x00#3",
		strings.Repeat("a", 3000), "https://x/" + strings.Repeat("a/", 900) + "issues/3",
	} {
		if got, err := ParseName(text); CodeOf(err) != Usage {
			t.Errorf("%.40q is %+v, %v; want a usage error", text, got, err)
		}
	}
}

func TestNameMatches(t *testing.T) {
	t.Parallel()
	issue := Task{ID: nameID, Key: Key{Gitea, "team/app", Issue, 3}, URL: "https://gitea.example.com/git/team/app/issues/3"}
	pull := Task{ID: nameID, Key: Key{GitHub, "team/app", Pull, 4}, URL: "https://github.com/team/app/pull/4"}
	merge := Task{ID: nameID, Key: Key{GitLab, "a/b/c", Pull, 4}, URL: "https://gitlab.com/a/b/c/-/merge_requests/4"}
	ticket := Task{ID: nameID, Key: Key{GitLab, "a/b/c", Issue, 4}, URL: "https://gitlab.com/a/b/c/-/issues/4"}
	for _, test := range []struct {
		name string
		of   Task
		want bool
	}{
		{"gitea:team/app#3", issue, true}, {"github:team/app#3", issue, false}, {"Team/App#3", issue, true}, {"team/other#3", issue, false}, {"#3", issue, true},
		{"#4", issue, false}, {"!3", issue, false}, {nameID[:9], issue, true}, {"0198", issue, false}, {"https://x/tasks/" + nameID, issue, true},
		{issue.URL, issue, true}, {strings.Replace(issue.URL, "git/", "", 1), issue, false}, {strings.Replace(issue.URL, "gitea.", "github.", 1), issue, false},
		// A number says it all where issues and pull requests share them.
		{"team/app#4", pull, true}, {"team/app!4", pull, true}, {pull.URL, pull, true}, {strings.Replace(pull.URL, "pull", "issues", 1), pull, true},
		// On GitLab they do not.
		{"a/b/c!4", merge, true}, {"a/b/c#4", merge, false}, {merge.URL, merge, true}, {ticket.URL, merge, false}, {merge.URL, ticket, false},
		{"a/b/c#4", ticket, true}, {"a/b/c!4", ticket, false}, {ticket.URL, ticket, true},
	} {
		name, err := ParseName(test.name)
		if err != nil || name.Matches(test.of) != test.want {
			t.Errorf("%q and %s: %v, want %v (%v)", test.name, test.of.Key, !test.want, test.want, err)
		}
	}
}

// What people are told of a move that is not there are words that they know.
func TestIllegalMovesInPlainWords(t *testing.T) {
	t.Parallel()
	for _, from := range States { // without a state there is no task: see TestIllegalMovesAreSentences
		for _, trigger := range Triggers {
			_, err := FindMove(from, trigger)
			if err == nil {
				continue
			}
			text, _ := IllegalMoveText(err)
			if stateWords[from] == "" || triggerWords[trigger] == "" || strings.Contains(text, "withdrawn") {
				t.Errorf("%q by %s: %q", from, trigger, text)
			}
		}
	}
	_, err := FindMove(Failed, Withdrawn)
	if want := "the task has failed and cannot be stopped; it has ended, and nothing more is done; to begin again, retry it"; err.Error() != want {
		t.Errorf("%q, want %q", err, want)
	}
}

func FuzzParseName(f *testing.F) {
	for _, text := range []string{"gitea:team/app#3", "!4", nameID, "https://gitlab.com/a/b/-/issues/4", "%zz", "https://[::1]/a/b/issues/1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		name, err := ParseName(text)
		if err == nil && name.ID == "" && name.Number < 1 {
			t.Errorf("%q names nothing: %+v", text, name)
		}
		name.Matches(Task{Key: Key{Gitea, "team/app", Issue, 3}, URL: text})
	})
}
