package llm

import (
	"encoding/json"
	"strings"

	"github.com/toryo-dev/toryo/internal/lazyregexp"
)

// explicit are the ways in which models mark a call in their text. Inside them a
// call of an unknown tool is a call all the same, and is answered with an error.
var explicit = []*lazyregexp.Regexp{
	lazyregexp.New("(?s)```[ \\t]*(?:tool_calls?|tool_code|function_calls?)[ \\t]*\\r?\\n(.*?)(?:```|\\z)"),
	lazyregexp.New(`(?s)<(?:tool_calls?|function_calls?)>(.*?)(?:</(?:tool_calls?|function_calls?)>|\z)`),
}

// implicit are blocks that may hold a call: they count when they name a tool
// that was offered.
var implicit = lazyregexp.New("(?s)```[ \\t]*(?:json|javascript|js)?[ \\t]*\\r?\\n(.*?)```")

// FindCalls takes the calls out of a model's text. It is lenient: marks of
// several kinds, single objects and arrays, other names for the keys, and JSON
// with the usual slips are all understood. What remains is the text around.
func FindCalls(text string, tools []Tool) (rest string, calls []Call) {
	known := map[string]bool{}
	for _, tool := range tools {
		known[tool.Name] = true
	}
	for _, mark := range explicit {
		rest, calls = takeOut(text, mark, nil)
		if len(calls) > 0 {
			return rest, calls
		}
	}
	if rest, calls = takeOut(text, implicit, known); len(calls) > 0 {
		return rest, calls
	}
	return findBare(text, known)
}

func takeOut(text string, mark *lazyregexp.Regexp, known map[string]bool) (string, []Call) {
	var calls []Call
	rest := mark.ReplaceAllStringFunc(text, func(block string) string {
		found := readCalls(mark.FindStringSubmatch(block)[1], known)
		if len(found) == 0 {
			return block
		}
		calls = append(calls, found...)
		return ""
	})
	return strings.TrimSpace(rest), calls
}

// mostBare is how many brackets are looked at for a call without marks. Each may
// take a look at the whole text.
const mostBare = 64

// findBare looks for JSON without any marks, which must name a known tool.
func findBare(text string, known map[string]bool) (string, []Call) {
	tried := 0
	for at := 0; at < len(text) && tried < mostBare; at++ {
		if text[at] != '{' && text[at] != '[' {
			continue
		}
		tried++
		end := matchingEnd(text, at)
		if end < 0 {
			continue
		}
		if calls := readCalls(text[at:end], known); len(calls) > 0 {
			return strings.TrimSpace(text[:at] + text[end:]), calls
		}
		at = end - 1
	}
	return text, nil
}

// readCalls reads one call, an array of calls, or several calls one after the
// other. With known given, only calls of those tools count, and all must be.
func readCalls(text string, known map[string]bool) []Call {
	var calls []Call
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimLeft(text, " \t\r\n,;") {
		end := len(text)
		if text[0] == '{' || text[0] == '[' {
			if found := matchingEnd(text, 0); found > 0 {
				end = found
			}
		}
		value, ok := lenientValue(text[:end])
		if !ok {
			return nil
		}
		text = text[end:]
		list, isList := value.([]any)
		if !isList {
			list = []any{value}
		}
		for _, item := range list {
			call, ok := readCall(item)
			if !ok || known != nil && !known[call.Name] {
				return nil
			}
			calls = append(calls, call)
		}
	}
	return calls
}

func readCall(value any) (Call, bool) {
	object, ok := value.(map[string]any)
	if !ok {
		return Call{}, false
	}
	if inner, ok := object["function"].(map[string]any); ok {
		object = inner
	}
	name := ""
	for _, key := range []string{"name", "tool", "tool_name", "function", "function_name"} {
		if text, ok := object[key].(string); ok && text != "" {
			name = text
			break
		}
	}
	if name == "" {
		return Call{}, false
	}
	for _, key := range []string{"arguments", "args", "parameters", "input", "params"} {
		switch arguments := object[key].(type) {
		case string:
			return Call{Name: name, Arguments: arguments}, true
		case nil:
		default:
			return Call{Name: name, Arguments: compactJSON(arguments)}, true
		}
	}
	return Call{Name: name, Arguments: "{}"}, true
}

func compactJSON(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		return "{}" // a value that came out of JSON always goes back in
	}
	return string(data)
}

func quoteJSON(text string) string { return compactJSON(text) }
