package inspect_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/git"
	"github.com/toryo-dev/toryo/internal/inspect"
	"github.com/toryo-dev/toryo/internal/redact"
	"github.com/toryo-dev/toryo/internal/task"
)

func TestWhatIsTooLargeIsAFinding(t *testing.T) {
	t.Parallel()
	many := map[string]string{}
	for i := range 12 {
		many[fmt.Sprint("f", i)] = strings.Repeat("line\n", 1000)
	}
	for name, change := range map[string]func(*inspect.Options){
		"bytes": func(o *inspect.Options) { o.MaxDiff = 20_000 },
		"files": func(o *inspect.Options) { o.MaxFiles = 10 },
		"time":  func(o *inspect.Options) { o.Within = time.Nanosecond },
	} {
		p := newProject(t, before)
		p.git("checkout", "--quiet", "-b", "work")
		p.write(many)
		p.commit("work")
		if got, want := messagesOf(p.inspect(change)), []string{"too_large"}; !slices.Equal(got, want) {
			t.Errorf("%s: found %q, want %q", name, got, want)
		}
	}
	p := newProject(t, before)
	p.git("checkout", "--quiet", "-b", "work")
	for i := range 101 {
		p.git("commit", "--quiet", "--allow-empty", "-m", fmt.Sprint(i))
	}
	if got, want := messagesOf(p.inspect(nil)), []string{"too_large"}; !slices.Equal(got, want) {
		t.Errorf("commits: found %q, want %q", got, want)
	}
}

// How much memory git takes for a diff is not told by how long the diff is. What could
// take much is not compared at all.
func TestLargeFilesAreNotCompared(t *testing.T) {
	t.Parallel()
	blank := strings.Repeat("\n", 3<<20)
	for name, test := range map[string]struct {
		before, files map[string]string
		change        func(*inspect.Options)
		want          []string
	}{
		"a large new file":      {nil, map[string]string{"new.txt": blank}, nil, []string{"too_large new.txt"}},
		"a line of a large one": {map[string]string{"old.txt": blank}, map[string]string{"old.txt": blank + "x\n"}, nil, []string{"too_large old.txt"}},
		"what becomes small":    {map[string]string{"old.txt": blank}, map[string]string{"old.txt": "x\n"}, nil, []string{"too_large old.txt"}},
		"a large one is gone":   {map[string]string{"old.txt": blank}, map[string]string{"old.txt": ""}, nil, nil},
		"many together": {
			map[string]string{"a": blank[:900<<10], "b": "b" + blank[:900<<10]}, map[string]string{"a": blank[:900<<10] + "a", "b": "b" + blank[:900<<10] + "b"},
			func(o *inspect.Options) { o.MaxBlobs = 2 << 20 }, []string{"too_large"},
		},
		"more memory than git may take": {
			map[string]string{"old.txt": blank[:900<<10]}, map[string]string{"old.txt": blank[:900<<10] + "x\n"},
			func(o *inspect.Options) { o.Memory = 64 << 20 }, []string{"too_large"},
		},
		"little memory for a small file": {
			nil, map[string]string{"new.txt": "x\n"}, func(o *inspect.Options) { o.Memory = 64 << 20 }, nil,
		},
		"as much as it may take": {map[string]string{"old.txt": blank[:900<<10]}, map[string]string{"old.txt": blank[:900<<10] + "x\n"}, nil, nil},
	} {
		p := newProject(t, before)
		p.write(test.before)
		p.commit("more")
		p.git("checkout", "--quiet", "-b", "work")
		p.write(test.files)
		p.commit("work")
		got := messagesOf(p.inspect(func(o *inspect.Options) {
			o.MaxDiff = 1 << 20
			if test.change != nil {
				test.change(o)
			}
		}))
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: found %q, want %q", name, got, test.want)
		}
	}
}

// There are only some looks at a time. Whoever waits can give up.
func TestFewLooksAtATime(t *testing.T) {
	t.Parallel()
	p := newProject(t, before)
	p.git("checkout", "--quiet", "-b", "work")
	p.write(map[string]string{"new.txt": "x\n"})
	tip := p.commit("work")
	program, err := git.Find()
	if err != nil {
		t.Fatal(err)
	}
	started, end := make(chan struct{}, 8), make(chan struct{})
	slow := masker(func(text string) string {
		started <- struct{}{}
		<-end
		return text
	})
	inspector := inspect.New(inspect.Options{Known: slow, Recognised: redact.New(), AtOnce: 2})
	change := inspect.Change{Git: program, Dir: filepath.Join(p.dir, ".git"), Commit: tip, Bases: []string{p.git("rev-parse", "main")}, Public: []string{"main"}}
	look := func(ctx context.Context) error {
		_, err := inspector.Inspect(ctx, change)
		return err
	}
	done := make(chan error, 2)
	for range 2 {
		go func() { done <- look(t.Context()) }()
	}
	<-started
	<-started
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := look(ctx); !errors.Is(err, context.Canceled) || len(started) != 0 {
		t.Errorf("a third look that is given up: %v", err)
	}
	close(end)
	go func() {
		for range started { // whoever else masks
		}
	}()
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

type masker func(string) string

func (m masker) String(text string) string { return m(text) }

// What is asked for takes no place from what is not, and a secret is always told.
func TestManyFindings(t *testing.T) {
	t.Parallel()
	files := map[string]string{".husky/pre-commit": "x\n", "z/CODEOWNERS": "x\n"}
	for i := range 150 {
		files[fmt.Sprintf(".github/workflows/%d.yml", i)] = "x\n"
		files[fmt.Sprintf("zz/%03d.txt", i)] = known + "\n"
	}
	p := newProject(t, before)
	p.git("checkout", "--quiet", "-b", "work")
	p.write(files)
	p.commit("work")
	found := p.inspect(nil)
	places := func(request string) (secrets int, others []string) {
		for _, finding := range (inspect.Request{Texts: []string{request}}).Unasked(found) {
			if finding.Kind == task.FindingSecret {
				secrets++
				continue
			}
			others = append(others, strings.TrimSpace(finding.Place()+" "+finding.Detail))
		}
		return secrets, others
	}
	secrets, others := places("Rewrite everything in .github/workflows/")
	if want := []string{".husky/pre-commit", "z/CODEOWNERS"}; secrets != 150 || !slices.Equal(others, want) {
		t.Errorf("told are %d secrets and %q, want 150 and %q", secrets, others, want)
	}
	secrets, others = places("Fix it")
	if secrets != 150 || len(others) != 101 || others[100] != "and 52 more" {
		t.Errorf("told are %d secrets and %d others: %q", secrets, len(others), others)
	}
}
