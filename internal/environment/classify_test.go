package environment_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/toryo-dev/toryo/internal/environment"
)

// The cases of testdata/logs.txt are logs as the tools print them. Each begins
// with a line "=== tool kind exit-code" and may have a line "--- text" that names
// the text which has to be in the line that decided.
func TestClassifyKnowsTheLogsOfEachTool(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("testdata", "logs.txt"))
	if err != nil {
		t.Fatal(err)
	}
	header := regexp.MustCompile(`^(\S+) (\S+) (\d+)$`)
	tools := map[string]bool{}
	for number, part := range strings.Split(string(text), "\n=== ")[1:] {
		first, log, _ := strings.Cut(part, "\n")
		found := header.FindStringSubmatch(first)
		if found == nil {
			t.Fatalf("case %d has a bad header: %q", number, first)
		}
		tools[found[1]] = true
		var decided string
		if at := strings.Index(log, "\n--- "); at >= 0 {
			decided, log = strings.TrimSpace(log[at+5:]), log[:at]
		}
		code, err := strconv.Atoi(found[3])
		if err != nil {
			t.Fatal(err)
		}
		got := environment.Classify([]byte(log), code)
		if string(got.Kind) != found[2] || got.Class != got.Kind.Class() {
			t.Errorf("%s log is %s (%s) by %q, want %s:\n%s", found[1], got.Kind, got.Class, got.Line, found[2], log)
		}
		if decided != "" && !strings.Contains(got.Line, decided) {
			t.Errorf("%s log was decided by %q, want the line with %q", found[1], got.Line, decided)
		}
	}
	for _, tool := range []string{"pip", "poetry", "uv", "conda", "npm", "yarn", "pnpm", "maven", "gradle", "go", "apt", "cargo", "git", "docker"} {
		if !tools[tool] {
			t.Errorf("there is no case for %s", tool)
		}
	}
}

func TestClassOfEachKind(t *testing.T) {
	t.Parallel()
	classes := map[environment.Kind]environment.Class{
		environment.Network: environment.Retryable, environment.Server: environment.Retryable, environment.Lock: environment.Retryable,
		environment.VersionConflict: environment.Fixable, environment.PackageNotFound: environment.Fixable,
		environment.ConfigSyntax: environment.Fixable, environment.Unknown: environment.Fixable,
		environment.Container: environment.Fatal, environment.Resource: environment.Fatal,
	}
	for kind, class := range classes {
		if got := kind.Class(); got != class {
			t.Errorf("%s is %s, want %s", kind, got, class)
		}
	}
}

func TestClassifyByExitCodeWhenTheLogTellsNothing(t *testing.T) {
	t.Parallel()
	if got := environment.Classify(nil, 137); got.Kind != environment.Resource {
		t.Errorf("killed without a word is %s, want resource", got.Kind)
	}
	if got := environment.Classify(nil, 1); got.Kind != environment.Unknown || got.Class != environment.Fixable {
		t.Errorf("an empty log is %s, %s, want unknown, fixable", got.Kind, got.Class)
	}
}

func TestClassifyFindsTheCauseInAVeryLongLog(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	for log.Len() < 20<<20 {
		log.WriteString("Compiling something with a fairly ordinary line of output\n")
	}
	log.WriteString("write /tmp/x: no space left on device\n")
	for range 400 {
		log.WriteString("make[1]: leaving\n")
	}
	got := environment.Classify(log.Bytes(), 2)
	if got.Kind != environment.Resource || !strings.Contains(got.Line, "no space left") {
		t.Errorf("got %s by %q, want resource", got.Kind, got.Line)
	}
}

func TestClassifyNeverPanicsAndIsConsistent(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		log := rapid.SliceOf(rapid.Byte()).Draw(t, "log")
		got := environment.Classify(log, rapid.IntRange(0, 255).Draw(t, "code"))
		if got.Class != got.Kind.Class() {
			t.Fatalf("class %s does not follow from kind %s", got.Class, got.Kind)
		}
	})
}

func BenchmarkClassify(b *testing.B) {
	line := "Collecting requests>=2.0 (from -r requirements.txt (line 3))\n"
	log := []byte(strings.Repeat(line, 1000) + "ERROR: No matching distribution found for nosuch\n")
	b.SetBytes(int64(len(log)))
	for b.Loop() {
		environment.Classify(log, 1)
	}
}
