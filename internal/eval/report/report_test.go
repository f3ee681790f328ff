package report_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toryo-dev/toryo/internal/eval"
	"github.com/toryo-dev/toryo/internal/eval/report"
	"github.com/toryo-dev/toryo/internal/llm"
)

func sample(models ...string) eval.Results {
	made := eval.Results{Set: "set <b>", SetHash: "abc", Tasks: []string{"a", "b", "c", "d", "left"}, Models: models}
	made.Checks = []eval.Check{{Task: "a", Usable: true}, {Task: "b", Usable: true}, {Task: "c", Usable: true}, {Task: "d", Usable: true}, {Task: "left", Reason: "no \x1b[31m<script>"}}
	made.Checks[0].NoChange.Environment = eval.Environment{Name: "go", Sandbox: "bubblewrap", Identity: "host-1"}
	for _, model := range models {
		made.Attempts = append(made.Attempts,
			eval.Attempt{Task: "a", Model: model, Number: 1, Status: eval.Resolved, Patch: "diff <a>\n", Worked: eval.Worked{Cost: llm.Unit}},
			eval.Attempt{Task: "b", Model: model, Number: 1, Status: eval.Unresolved, Patch: "diff b\n"},
			eval.Attempt{Task: "c", Model: model, Number: 1, Status: eval.Unresolved},
			eval.Attempt{Task: "d", Model: model, Number: 1, Status: eval.Failed, Error: "the provider is down"},
		)
	}
	return made
}

// The files are as SWE-bench's harness reads them.
func TestFilesOfTheHarness(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	if err := report.Write(eval.Folder(out), sample("vendor:m")); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(out, "predictions.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var rows []map[string]string
	for scanner := bufio.NewScanner(bytes.NewReader(data)); scanner.Scan(); {
		var row map[string]string
		if err := json.Unmarshal(scanner.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
	if len(rows) != 4 || !cmp.Equal(rows[0], map[string]string{"instance_id": "a", "model_name_or_path": "vendor:m", "model_patch": "diff <a>\n"}) {
		t.Errorf("the predictions are %v", rows)
	}
	var is map[string]any
	if data, err = os.ReadFile(filepath.Join(out, "report.json")); err != nil || json.Unmarshal(data, &is) != nil {
		t.Fatalf("%v: %s", err, data)
	}
	want := map[string]any{
		"total_instances": 5., "submitted_instances": 4., "completed_instances": 2., "resolved_instances": 1., "unresolved_instances": 1., "empty_patch_instances": 1., "error_instances": 1.,
		"completed_ids": []any{"a", "b"}, "incomplete_ids": []any{"left"}, "empty_patch_ids": []any{"c"}, "submitted_ids": []any{"a", "b", "c", "d"},
		"resolved_ids": []any{"a"}, "unresolved_ids": []any{"b"}, "error_ids": []any{"d"}, "schema_version": 2.,
	}
	if diff := cmp.Diff(want, is); diff != "" {
		t.Error(diff)
	}
	results, err := eval.Folder(out).Results()
	if err != nil || len(results.Attempts) != 4 || results.Attempts[0].Cost != llm.Unit || results.Attempts[0].Patch != "" {
		t.Errorf("read back: %+v, %v", results, err)
	}
}

// The page needs nothing else, and what others wrote is text in it.
func TestPage(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	for _, models := range [][]string{{"small"}, {"small", "large"}} { // as when one is added
		if err := report.Write(eval.Folder(out), sample(models...)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"predictions.jsonl", "report.json"} {
		if _, err := os.Stat(filepath.Join(out, name)); !os.IsNotExist(err) {
			t.Errorf("%s of an earlier call: %v", name, err)
		}
	}
	for _, name := range []string{"predictions.small.jsonl", "predictions.large.jsonl", "report.small.json", "report.large.json"} {
		if _, err := os.Stat(filepath.Join(out, name)); err != nil {
			t.Error(err)
		}
	}
	data, err := os.ReadFile(filepath.Join(out, eval.PageFile))
	if err != nil {
		t.Fatal(err)
	}
	page := string(data)
	for _, part := range []string{"<script", "src=", "href=", "url(", "\x1b"} {
		if strings.Contains(page, part) {
			t.Errorf("the page has %q", part)
		}
	}
	for _, part := range []string{"set &lt;b&gt;", "33.3 ±", "host-1", "&lt;script&gt;", "the provider is down", `aria-label="Resolved tasks by model"`, `aria-label="Resolved tasks by cost of an attempt"`} {
		if !strings.Contains(page, part) {
			t.Errorf("the page lacks %q", part)
		}
	}
	for part := range strings.SplitSeq(page, "<svg ") {
		if end := strings.Index(part, "</svg>"); end > 0 {
			if err := xml.Unmarshal([]byte("<svg "+part[:end]+"</svg>"), new(struct{})); err != nil {
				t.Errorf("a plot cannot be read: %v", err)
			}
		}
	}
	if strings.Count(page, "<svg ") != 2 {
		t.Errorf("the page has %d plots", strings.Count(page, "<svg "))
	}
}

func TestPrint(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	if err := report.Print(&text, sample("small")); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"4 of 5 tasks can be used", "small  33.3 ± 33.3 %", "left out: left: no [31m<script>", "error: d by small, attempt 1: the provider is down"} {
		if !strings.Contains(text.String(), part) {
			t.Errorf("it lacks %q:\n%s", part, text.String())
		}
	}
	if strings.Contains(text.String(), "\x1b") {
		t.Error("it commands the terminal")
	}
}
