package llm_test

import (
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/llm"
)

var textTools = []llm.Tool{{Name: "read", Schema: []byte(`{"type":"object"}`)}, {Name: "run", Schema: []byte(`{"type":"object"}`)}}

func TestFindCalls(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		rest string
		want []string // "name arguments"
	}{
		"the form that is asked for": {"Let me see.\n```tool_calls\n[{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}]\n```", "Let me see.", []string{`read {"path":"a"}`}},
		"two calls":                  {"```tool_calls\n[{\"name\":\"read\",\"arguments\":{}},{\"name\":\"run\",\"arguments\":{\"command\":\"ls\"}}]\n```", "", []string{`read {}`, `run {"command":"ls"}`}},
		"one object":                 {"```tool_call\n{\"name\": \"run\", \"arguments\": {\"command\": \"ls\"}}\n```", "", []string{`run {"command":"ls"}`}},
		"a tag":                      {"ok <tool_call>{\"name\": \"run\", \"arguments\": {\"command\": \"ls\"}}</tool_call>", "ok", []string{`run {"command":"ls"}`}},
		"two tags":                   {"<tool_call>{\"name\": \"read\"}</tool_call><tool_call>{\"name\": \"run\"}</tool_call>", "", []string{`read {}`, `run {}`}},
		"a tag that never closes":    {"<tool_call>{\"name\": \"read\", \"arguments\": {\"path\": \"x\"}}", "", []string{`read {"path":"x"}`}},
		"a json block":               {"```json\n{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}\n```", "", []string{`read {"path":"a"}`}},
		"bare":                       {"I use {\"tool\": \"read\", \"args\": {\"path\": \"a}b\"}} now", "I use  now", []string{`read {"path":"a}b"}`}},
		"function inside":            {"```json\n{\"type\":\"function\",\"function\":{\"name\":\"run\",\"parameters\":{\"command\":\"ls\"}}}\n```", "", []string{`run {"command":"ls"}`}},
		"arguments as text":          {"```tool_calls\n{\"name\":\"run\",\"arguments\":\"{\\\"command\\\":\\\"ls\\\"}\"}\n```", "", []string{`run {"command":"ls"}`}},
		"slips":                      {"```tool_calls\n[{'name': 'run', /* why */ 'arguments': {'command': 'echo \"hi\"\nls', 'wait': True, 'more': None,},}, ]\n```", "", []string{`run {"command":"echo \"hi\"\nls","more":null,"wait":true}`}},
		"one after the other":        {"```tool_calls\n{\"name\":\"read\"}\n{\"name\":\"run\"}\n```", "", []string{`read {}`, `run {}`}},
		"unknown tool, marked":       {"```tool_calls\n{\"name\":\"fly\"}\n```", "", []string{`fly {}`}},
		"unknown tool, not marked":   {"the config is {\"name\": \"fly\", \"arguments\": {}}", "the config is {\"name\": \"fly\", \"arguments\": {}}", nil},
		"an answer in JSON":          {"```json\n{\"goal\": \"x\", \"plan\": [1, 2]}\n```", "```json\n{\"goal\": \"x\", \"plan\": [1, 2]}\n```", nil},
		"broken beyond fixing":       {"```tool_calls\n{\"name\": \"read\", \"argu\n```", "```tool_calls\n{\"name\": \"read\", \"argu\n```", nil},
		"code with braces":           {"func main() { fmt.Println(map[string]int{}) }", "func main() { fmt.Println(map[string]int{}) }", nil},
		"nothing":                    {"All done.", "All done.", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rest, calls := llm.FindCalls(c.text, textTools)
			var got []string
			for _, call := range calls {
				got = append(got, call.Name+" "+call.Arguments)
			}
			if rest != c.rest || strings.Join(got, "|") != strings.Join(c.want, "|") {
				t.Errorf("rest %q, calls %q\nwant %q, %q", rest, got, c.rest, c.want)
			}
		})
	}
}

func TestFindCallsInAMegabyteOfBrackets(t *testing.T) {
	t.Parallel()
	for _, bracket := range []string{"{", "[{", "```json\n{", "<tool_call>"} {
		text := strings.Repeat(bracket, 1<<20/len(bracket))
		if rest, calls := llm.FindCalls(text, textTools); rest != text || calls != nil {
			t.Errorf("%d calls in a text of %q", len(calls), bracket)
		}
	}
}

func FuzzFindCalls(f *testing.F) {
	f.Add("```tool_calls\n[{'name': 'run', 'arguments': {}}]\n```")
	f.Add("<tool_call>{\"name\":")
	f.Add("{[\"\\")
	f.Fuzz(func(t *testing.T, text string) {
		_, calls := llm.FindCalls(text, textTools)
		for _, call := range calls {
			if call.Name == "" {
				t.Errorf("a call without a name from %q", text)
			}
		}
	})
}
