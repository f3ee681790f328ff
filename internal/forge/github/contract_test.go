package github_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"

	"github.com/toryo-dev/toryo/internal/testkit"
)

// usedPaths are the paths of GitHub's interface that the adapter may use. A request
// to any other one fails the test.
var usedPaths = []string{
	"/user", "/users/{username}", "/app", "/app/installations/{installation_id}/access_tokens",
	"/orgs/{org}/installation", "/users/{username}/installation",
	"/user/repos", "/installation/repositories",
	"/repos/{owner}/{repo}", "/repos/{owner}/{repo}/collaborators/{username}/permission",
	"/repos/{owner}/{repo}/issues", "/repos/{owner}/{repo}/issues/{issue_number}",
	"/repos/{owner}/{repo}/issues/{issue_number}/comments", "/repos/{owner}/{repo}/issues/comments/{comment_id}",
	"/repos/{owner}/{repo}/issues/{issue_number}/events",
	"/repos/{owner}/{repo}/issues/{issue_number}/timeline", "/repos/{owner}/{repo}/issues/{issue_number}/dependencies/blocked_by",
	"/repos/{owner}/{repo}/labels", "/repos/{owner}/{repo}/issues/{issue_number}/labels",
	"/repos/{owner}/{repo}/issues/{issue_number}/labels/{name}",
	"/repos/{owner}/{repo}/issues/{issue_number}/assignees",
	"/repos/{owner}/{repo}/pulls", "/repos/{owner}/{repo}/pulls/{pull_number}",
	"/repos/{owner}/{repo}/pulls/{pull_number}/reviews", "/repos/{owner}/{repo}/pulls/{pull_number}/comments",
	"/repos/{owner}/{repo}/pulls/{pull_number}/comments/{comment_id}/replies",
	"/repos/{owner}/{repo}/issues/{issue_number}/reactions",
	"/repos/{owner}/{repo}/issues/{issue_number}/reactions/{reaction_id}",
	"/repos/{owner}/{repo}/issues/comments/{comment_id}/reactions",
	"/repos/{owner}/{repo}/issues/comments/{comment_id}/reactions/{reaction_id}",
	"/repos/{owner}/{repo}/statuses/{sha}", "/repos/{owner}/{repo}/commits/{ref}/status",
	"/repos/{owner}/{repo}/commits/{ref}/check-runs", "/repos/{owner}/{repo}/actions/jobs/{job_id}/logs",
	"/repos/{owner}/{repo}/pulls/{pull_number}/merge",
	"/repos/{owner}/{repo}/branches/{branch}", "/repos/{owner}/{repo}/git/refs",
	"/repos/{owner}/{repo}/branches", "/repos/{owner}/{repo}/labels/{name}", "/repos/{owner}/{repo}/actions/runs",
	"/repos/{owner}/{repo}/hooks", "/repos/{owner}/{repo}/hooks/{hook_id}",
	"/repos/{owner}/{repo}/hooks/{hook_id}/deliveries", "/repos/{owner}/{repo}/hooks/{hook_id}/pings",
}

// contract is GitHub's own description of its interface, as far as it is used.
type contract struct{ document *openapi3.T }

// The description takes a while to read, so the tests share one.
var (
	readContract   sync.Once
	sharedContract *openapi3.T
	errContract    error
)

func loadContract(file string) (*openapi3.T, error) {
	whole, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	sliced, err := slicePaths(whole, usedPaths)
	if err != nil {
		return nil, err
	}
	return openapi3.NewLoader().LoadFromData(sliced)
}

func newContract(t testing.TB) *contract {
	t.Helper()
	file := testkit.Contracts(t, "npm", "node_modules", "@octokit", "openapi", "generated", "api.github.com.json")
	readContract.Do(func() { sharedContract, errContract = loadContract(file) })
	if errContract != nil {
		t.Fatal(errContract)
	}
	return &contract{sharedContract}
}

var reference = regexp.MustCompile(`"#/components/([^/"]+)/([^"]+)"`)

// slicePaths keeps some paths of a description and what they refer to: all of it
// would take long to load.
func slicePaths(whole []byte, paths []string) ([]byte, error) {
	var document map[string]json.RawMessage
	if err := json.Unmarshal(whole, &document); err != nil {
		return nil, err
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(document["paths"], &all); err != nil {
		return nil, err
	}
	var components map[string]map[string]json.RawMessage
	if err := json.Unmarshal(document["components"], &components); err != nil {
		return nil, err
	}
	kept := map[string]json.RawMessage{}
	var todo [][]byte
	for _, path := range paths {
		if all[path] == nil {
			return nil, fmt.Errorf("GitHub's description has no path %s", path)
		}
		kept[path] = all[path]
		todo = append(todo, all[path])
	}
	needed := map[string]map[string]json.RawMessage{}
	for len(todo) > 0 {
		text := todo[0]
		todo = todo[1:]
		for _, match := range reference.FindAllSubmatch(text, -1) {
			kind, name := string(match[1]), string(match[2])
			if needed[kind][name] != nil {
				continue
			}
			if needed[kind] == nil {
				needed[kind] = map[string]json.RawMessage{}
			}
			needed[kind][name] = components[kind][name]
			todo = append(todo, components[kind][name])
		}
	}
	return json.Marshal(map[string]any{
		"openapi": document["openapi"], "info": document["info"], "paths": kept, "components": needed,
	})
}

// match finds the path of a request. The parameters are unescaped.
func (c *contract) match(request *http.Request, prefix string) (*routers.Route, map[string]string) {
	rest, found := strings.CutPrefix(request.URL.EscapedPath(), prefix)
	if !found {
		return nil, nil
	}
	parts := strings.Split(rest, "/")
	var best *routers.Route
	var bestParameters map[string]string
	for path, item := range c.document.Paths.Map() {
		parameters, fits := fit(strings.Split(path, "/"), parts)
		if !fits || item.GetOperation(request.Method) == nil {
			continue
		}
		if best == nil || len(parameters) < len(bestParameters) {
			best = &routers.Route{Spec: c.document, Path: path, PathItem: item, Method: request.Method, Operation: item.GetOperation(request.Method)}
			bestParameters = parameters
		}
	}
	return best, bestParameters
}

func fit(template, parts []string) (map[string]string, bool) {
	if len(template) != len(parts) {
		return nil, false
	}
	parameters := map[string]string{}
	for i, part := range template {
		if name, isParameter := strings.CutPrefix(part, "{"); isParameter {
			value, err := url.PathUnescape(parts[i])
			if err != nil || value == "" {
				return nil, false
			}
			parameters[strings.TrimSuffix(name, "}")] = value
		} else if part != parts[i] {
			return nil, false
		}
	}
	return parameters, true
}

// reply is an answer of the server, without the fields that only the contract
// asks for.
type reply struct {
	status int
	body   any // nil for none, a string for text
	header map[string]string
}

// serve checks a request against the contract, lets handle answer it, fills in what
// the contract asks for besides, and checks the answer as well.
func (c *contract) serve(t testing.TB, w http.ResponseWriter, r *http.Request, prefix string, handle func(route string, parameters map[string]string, body []byte) reply) {
	t.Helper()
	route, parameters := c.match(r, prefix)
	if route == nil {
		t.Errorf("%s %s is not in GitHub's description, or not in our list", r.Method, r.URL.EscapedPath())
		http.NotFound(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client gave up
	}
	input := &openapi3filter.RequestValidationInput{
		Request: r, PathParams: parameters, Route: route,
		Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, IncludeResponseStatus: true},
	}
	input.Options.WithCustomSchemaErrorFunc(func(problem *openapi3.SchemaError) string { // without the schema, which is long
		return "/" + strings.Join(problem.JSONPointer(), "/") + ": " + problem.Reason
	})
	r.Body = io.NopCloser(bytes.NewReader(body))
	if err := openapi3filter.ValidateRequest(r.Context(), input); err != nil {
		t.Errorf("%s %s: the request is not as GitHub describes it: %v\n%s", r.Method, r.URL, err, body)
	}
	answer := handle(r.Method+" "+route.Path, parameters, body)
	recorder := httptest.NewRecorder()
	for name, value := range answer.header {
		recorder.Header().Set(name, value)
	}
	c.write(recorder, route, answer)
	if described := route.Operation.Responses.Status(answer.status); described != nil {
		output := &openapi3filter.ResponseValidationInput{
			RequestValidationInput: input, Status: answer.status, Header: recorder.Header(),
			Body: io.NopCloser(bytes.NewReader(recorder.Body.Bytes())), Options: input.Options,
		}
		if _, isText := answer.body.(string); !isText {
			if err := openapi3filter.ValidateResponse(r.Context(), output); err != nil {
				t.Errorf("%s %s: the answer is not as GitHub describes it: %v", r.Method, r.URL, err)
			}
		}
	} else if answer.status < 300 {
		t.Errorf("%s %s: GitHub does not describe an answer %d", r.Method, r.URL, answer.status)
	}
	maps.Copy(w.Header(), recorder.Header())
	w.WriteHeader(recorder.Code)
	_, _ = w.Write(recorder.Body.Bytes())
}

func (c *contract) write(w http.ResponseWriter, route *routers.Route, answer reply) {
	switch body := answer.body.(type) {
	case nil:
		w.WriteHeader(answer.status)
	case string:
		w.WriteHeader(answer.status)
		_, _ = io.WriteString(w, body)
	default:
		value := plainJSON(body)
		if described := route.Operation.Responses.Status(answer.status); described != nil {
			if media := described.Value.Content.Get("application/json"); media != nil && media.Schema != nil {
				value = fill(media.Schema.Value, value)
			}
		}
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.WriteHeader(answer.status)
		if err := json.NewEncoder(w).Encode(value); err != nil {
			panic(err) // it came from JSON
		}
	}
}

// plainJSON makes a value as JSON decodes it.
func plainJSON(value any) any {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	var plain any
	if err := json.Unmarshal(text, &plain); err != nil {
		panic(err)
	}
	return plain
}

// fill adds the fields that a schema requires and the value lacks.
func fill(schema *openapi3.Schema, value any) any {
	switch value := value.(type) {
	case []any:
		if schema.Items != nil {
			for i := range value {
				value[i] = fill(schema.Items.Value, value[i])
			}
		}
		return value
	case map[string]any:
		for _, part := range schema.AllOf {
			fill(part.Value, value)
		}
		fillOne(schema, value)
		for name, property := range schema.Properties {
			if has, present := value[name]; present {
				value[name] = fill(property.Value, has)
			}
		}
		for _, name := range schema.Required {
			if _, present := value[name]; !present && schema.Properties[name] != nil {
				value[name] = least(schema.Properties[name].Value)
			}
		}
		return value
	default:
		return value
	}
}

// fillOne fills in for the first of several schemas that then fits.
func fillOne(schema *openapi3.Schema, value map[string]any) {
	alternatives := append(append(openapi3.SchemaRefs{}, schema.OneOf...), schema.AnyOf...)
	for _, alternative := range alternatives {
		filled := fill(alternative.Value, plainJSON(value))
		if alternative.Value.VisitJSON(filled) == nil {
			maps.Copy(value, filled.(map[string]any))
			return
		}
	}
}

// least makes the least value that a schema allows.
func least(schema *openapi3.Schema) any {
	switch {
	case schema.Nullable:
		return nil
	case len(schema.Enum) > 0:
		return schema.Enum[0]
	case len(schema.AllOf) > 0, schema.Type.Is("object"):
		return fill(schema, map[string]any{})
	case len(schema.OneOf) > 0:
		return least(schema.OneOf[0].Value)
	case len(schema.AnyOf) > 0:
		return least(schema.AnyOf[0].Value)
	case schema.Type.Is("array"):
		return []any{}
	case schema.Type.Is("boolean"):
		return false
	case schema.Type.Is("integer"), schema.Type.Is("number"):
		return float64(1)
	case schema.Format == "date-time":
		return "2030-01-01T00:00:00Z"
	case schema.Format == "uri":
		return "https://github.example/x"
	default:
		return "x"
	}
}
