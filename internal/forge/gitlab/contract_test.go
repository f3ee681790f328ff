package gitlab_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/toryo-dev/toryo/internal/testkit"
)

// contract is what GitLab published about its answers: schemas for some, and
// recorded answers for others.
type contract struct {
	schemas  map[string]*jsonschema.Schema
	recorded map[string]any
}

// schemaFiles are the schemas by the names that the routes use.
var schemaFiles = map[string]string{
	"issue": "issue.json", "merge_request": "merge_request.json", "notes": "notes.json",
	"user": "user/basic.json", "members": "members.json", "hook": "project_hook.json",
}

// recordings are the recorded answers by the names that the routes use.
var recordings = map[string]string{
	"project":    "projects%2F61363672",
	"award":      "projects%2F61363672%2Fissues%2F1%2Faward_emoji%3Fpage=1&per_page=2",
	"discussion": "projects%2F61363672%2Fissues%2F2%2Fdiscussions%3Fpage=1&per_page=100",
	"approvals":  "projects%2F61363672%2Fmerge_requests%2F1%2Fapprovals",
	"issue":      "projects%2F61363672%2Fissues%3Fpage=1&per_page=2&sort=asc&state=all",
	"request":    "projects%2F61363672%2Fmerge_requests%2F1",
	"label":      "projects%2F61363672%2Flabels%3Fpage=1&per_page=100",
}

func newContract(t testing.TB) *contract {
	t.Helper()
	c := &contract{schemas: map[string]*jsonschema.Schema{}, recorded: map[string]any{}}
	compiler := schemaCompiler(t)
	for name, file := range schemaFiles {
		schema, err := compiler.Compile("https://gitlab.example/public_api/v4/" + file)
		if err != nil {
			t.Fatal(err)
		}
		c.schemas[name] = schema
	}
	for name, file := range recordings {
		_, body := recording(t, file)
		var value any
		if err := json.Unmarshal(body, &value); err != nil {
			t.Fatal(err)
		}
		if list, isList := value.([]any); isList {
			value = list[0]
		}
		c.recorded[name] = value
	}
	return c
}

// recording returns a recorded answer of gitlab.com: its headers and its body.
func recording(t testing.TB, file string) (header, body []byte) {
	t.Helper()
	text, err := os.ReadFile(testkit.Contracts(t, "gitlab", "full_download", "GET_%2Fapi%2Fv4%2F"+file))
	if err != nil {
		t.Fatal(err)
	}
	header, body, _ = bytes.Cut(text, []byte("\n\n"))
	return header, body
}

func schemaCompiler(t testing.TB) *jsonschema.Compiler {
	t.Helper()
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft7)
	root := filepath.Join("testdata", "schemas")
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".json") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		return compiler.AddResource("https://gitlab.example/"+filepath.ToSlash(name), loosen(value))
	})
	if err != nil {
		t.Fatal(err)
	}
	return compiler
}

// loosen drops what servers of today no longer keep to: see the README beside the
// schemas. Who resolved a note is an object by now.
func loosen(value any) any {
	switch value := value.(type) {
	case map[string]any:
		delete(value, "additionalProperties")
		delete(value, "format")
		delete(value, "resolved_by")
		for _, inner := range value {
			loosen(inner)
		}
	case []any:
		for _, inner := range value {
			loosen(inner)
		}
	}
	return value
}

// check says what is wrong with an answer. name may end in "[]" for a listing.
func (c *contract) check(name string, body []byte) error {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return err
	}
	name, isList := strings.CutSuffix(name, "[]")
	values := []any{value}
	if isList {
		values = value.([]any)
	}
	for _, one := range values {
		if err := c.checkOne(name, one); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func (c *contract) checkOne(name string, value any) error {
	switch name {
	case "note":
		return c.schemas["notes"].Validate([]any{value})
	case "member":
		return c.schemas["members"].Validate([]any{value})
	case "discussion":
		if err := alike(c.recorded["discussion"], value, "notes"); err != nil {
			return err
		}
		return c.schemas["notes"].Validate(value.(map[string]any)["notes"])
	case "project", "award", "approvals", "label":
		return alike(c.recorded[name], value, "approved_at")
	}
	schema := c.schemas[name]
	if schema == nil {
		return fmt.Errorf("no schema called %q", name)
	}
	if err := schema.Validate(value); err != nil {
		return err
	}
	// Newer fields than the schema's are compared with what was recorded.
	switch name {
	case "issue":
		return alike(c.recorded["issue"], value, "moved_to_id")
	case "merge_request":
		return alike(c.recorded["request"], value)
	}
	return nil
}

// alike says whether every field of a value is in the recorded one, with the same
// type where both have a value. Some are known to be newer.
func alike(recorded, value any, newer ...string) error {
	want, isObject := recorded.(map[string]any)
	got, isToo := value.(map[string]any)
	if isObject != isToo {
		return fmt.Errorf("%v is not like %v", value, recorded)
	}
	for name, inner := range got {
		known, there := want[name]
		switch {
		case slices.Contains(newer, name):
		case !there:
			return fmt.Errorf("gitlab.com sends no field %q", name)
		case known == nil || inner == nil:
		case kind(known) != kind(inner):
			return fmt.Errorf("the field %q is %s, on gitlab.com %s", name, kind(inner), kind(known))
		}
	}
	return nil
}

func kind(value any) string {
	switch value.(type) {
	case json.Number, float64:
		return "number"
	default:
		return fmt.Sprintf("%T", value)
	}
}
