package report

import (
	"bytes"
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/toryo-dev/toryo/internal/eval"
	"github.com/toryo-dev/toryo/internal/eval/tally"
	"github.com/toryo-dev/toryo/internal/task"
)

// prediction is a row as SWE-bench's harness reads it.
type prediction struct {
	ID    string `json:"instance_id"`
	Model string `json:"model_name_or_path"`
	Patch string `json:"model_patch"`
}

// harness is a report in the form of SWE-bench's harness.
type harness struct {
	Total         int      `json:"total_instances"`
	Submitted     int      `json:"submitted_instances"`
	Completed     int      `json:"completed_instances"`
	Resolved      int      `json:"resolved_instances"`
	Unresolved    int      `json:"unresolved_instances"`
	Empty         int      `json:"empty_patch_instances"`
	Errors        int      `json:"error_instances"`
	CompletedIDs  []string `json:"completed_ids"`
	IncompleteIDs []string `json:"incomplete_ids"`
	EmptyIDs      []string `json:"empty_patch_ids"`
	SubmittedIDs  []string `json:"submitted_ids"`
	ResolvedIDs   []string `json:"resolved_ids"`
	UnresolvedIDs []string `json:"unresolved_ids"`
	ErrorIDs      []string `json:"error_ids"`
	Version       int      `json:"schema_version"`
}

// whole is what the file with everything has.
type whole struct {
	eval.Results

	Models []tally.Model `json:"summary"`
}

// Write writes all files. Those of the harness have one attempt of one model each, since it
// knows no others.
func Write(out eval.Folder, results eval.Results) error {
	models := tally.Of(results)
	data, err := eval.Encode(whole{short(results), models})
	if err != nil {
		return err
	}
	if err := eval.WriteFile(filepath.Join(string(out), eval.ResultsFile), data); err != nil {
		return err
	}
	if err := out.ForgetReports(); err != nil { // of other models or attempts
		return err
	}
	attempts := 0
	for _, attempt := range results.Attempts {
		attempts = max(attempts, attempt.Number)
	}
	for _, model := range results.Models {
		for number := 1; number <= attempts; number++ {
			if err := writeHarness(out, results, model, number); err != nil {
				return err
			}
		}
	}
	var page bytes.Buffer
	if err := pageOf(results, models).Render(context.Background(), &page); err != nil {
		return task.Wrap(task.Internal, err, "the page cannot be written")
	}
	return eval.WriteFile(filepath.Join(string(out), eval.PageFile), page.Bytes())
}

// short is the results without patches and outputs, which are in the files of the attempts.
func short(results eval.Results) eval.Results {
	results.Attempts = slices.Clone(results.Attempts)
	for i := range results.Attempts {
		results.Attempts[i].Patch, results.Attempts[i].Score.Output = "", ""
	}
	results.Checks = slices.Clone(results.Checks)
	for i := range results.Checks {
		results.Checks[i].Gold.Output, results.Checks[i].NoChange.Output, results.Checks[i].Expected.Patch = "", "", ""
	}
	return results
}

// writeHarness writes the predictions and the report of one attempt of a model.
func writeHarness(out eval.Folder, results eval.Results, model string, number int) error {
	suffix := ""
	if len(results.Models) > 1 {
		suffix += "." + eval.FileName(model)
	}
	if number > 1 {
		suffix += "." + strconv.Itoa(number)
	}
	var lines bytes.Buffer
	encoder := json.NewEncoder(&lines)
	encoder.SetEscapeHTML(false)
	made := harness{Total: len(results.Tasks), Version: 2}
	attempted := map[string]bool{}
	for _, attempt := range results.Attempts {
		if attempt.Model != model || attempt.Number != number {
			continue
		}
		attempted[attempt.Task] = true
		made.add(attempt)
		if err := encoder.Encode(prediction{attempt.Task, model, attempt.Patch}); err != nil {
			return task.Wrap(task.Internal, err, "the predictions cannot be written")
		}
	}
	for _, id := range results.Tasks {
		if !attempted[id] {
			made.IncompleteIDs = append(made.IncompleteIDs, id)
		}
	}
	made.count()
	data, err := json.MarshalIndent(made, "", "    ")
	if err != nil {
		return task.Wrap(task.Internal, err, "the report cannot be written")
	}
	if err := eval.WriteFile(filepath.Join(string(out), "predictions"+suffix+".jsonl"), lines.Bytes()); err != nil {
		return err
	}
	return eval.WriteFile(filepath.Join(string(out), "report"+suffix+".json"), append(data, '\n'))
}

// add sorts an attempt in as the harness does: one without a patch is not completed.
func (h *harness) add(attempt eval.Attempt) {
	h.SubmittedIDs = append(h.SubmittedIDs, attempt.Task)
	switch {
	case attempt.Status == eval.Failed:
		h.ErrorIDs = append(h.ErrorIDs, attempt.Task)
	case attempt.Patch == "":
		h.EmptyIDs = append(h.EmptyIDs, attempt.Task)
	case attempt.Status == eval.Resolved:
		h.CompletedIDs, h.ResolvedIDs = append(h.CompletedIDs, attempt.Task), append(h.ResolvedIDs, attempt.Task)
	default:
		h.CompletedIDs, h.UnresolvedIDs = append(h.CompletedIDs, attempt.Task), append(h.UnresolvedIDs, attempt.Task)
	}
}

// count sorts the lists and counts them.
func (h *harness) count() {
	for list, number := range map[*[]string]*int{
		&h.CompletedIDs: &h.Completed, &h.IncompleteIDs: nil, &h.EmptyIDs: &h.Empty, &h.SubmittedIDs: &h.Submitted,
		&h.ResolvedIDs: &h.Resolved, &h.UnresolvedIDs: &h.Unresolved, &h.ErrorIDs: &h.Errors,
	} {
		if *list == nil {
			*list = []string{} // the harness reads lists
		}
		slices.Sort(*list)
		if number != nil {
			*number = len(*list)
		}
	}
}
