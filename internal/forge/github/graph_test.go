package github_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
	"github.com/vektah/gqlparser/v2/validator"
	"github.com/vektah/gqlparser/v2/validator/rules"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
	"github.com/toryo-dev/toryo/internal/testkit/forgeworld"
)

// graph is GitHub's own schema of its GraphQL interface.
type graph struct{ schema *ast.Schema }

// The schema takes a while to read, so the tests share one.
var (
	readGraph   sync.Once
	sharedGraph *ast.Schema
	errGraph    error
)

func loadGraph(file string) (*ast.Schema, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	document, err := parser.ParseSchemas(validator.Prelude, &ast.Source{Name: "schema.graphql", Input: string(text)})
	if err != nil {
		return nil, err
	}
	for _, definition := range document.Definitions { // GitHub's file has a field twice
		seen := map[string]bool{}
		definition.Fields = slices.DeleteFunc(definition.Fields, func(field *ast.FieldDefinition) bool {
			again := seen[field.Name]
			seen[field.Name] = true
			return again
		})
	}
	return validator.ValidateSchemaDocument(document)
}

func newGraph(t testing.TB) *graph {
	t.Helper()
	file := testkit.Contracts(t, "npm", "node_modules", "@octokit", "graphql-schema", "schema.graphql")
	readGraph.Do(func() { sharedGraph, errGraph = loadGraph(file) })
	if errGraph != nil {
		t.Fatal(errGraph)
	}
	return &graph{sharedGraph}
}

// serveGraph answers a query that GitHub's schema allows with exactly the fields
// that it asks for.
func (s *server) serveGraph(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	var post struct {
		Query     string
		Variables map[string]any
	}
	if err := json.Unmarshal(body, &post); err != nil {
		s.t.Errorf("a query that is not JSON: %v", err)
	}
	query, problems := gqlparser.LoadQueryWithRules(s.graph.schema, post.Query, rules.NewDefaultRules())
	if problems != nil {
		s.t.Errorf("a query that GitHub does not allow: %v", problems)
		http.Error(w, "bad query", http.StatusBadRequest)
		return
	}
	if _, err := validator.VariableValues(s.graph.schema, query.Operations[0], post.Variables); err != nil {
		s.t.Errorf("variables that GitHub does not allow: %v", err)
	}
	s.world.Lock()
	defer s.world.Unlock()
	answer := object{}
	if user := s.world.Tokens[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]; user == nil {
		w.WriteHeader(http.StatusUnauthorized)
		answer = object{"message": "Bad credentials"}
	} else if data, problem := s.graphData(user, query.Operations[0], post.Variables); problem != nil {
		answer["data"], answer["errors"] = nil, []object{problem}
	} else {
		answer["data"] = s.project(query.Operations[0].SelectionSet, data)
	}
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		s.t.Logf("the client did not wait for the answer: %v", err)
	}
}

// graphData makes all that a query may ask for.
func (s *server) graphData(user *forgeworld.User, operation *ast.OperationDefinition, variables map[string]any) (object, object) {
	missing := object{"type": "NOT_FOUND", "message": "Could not resolve it."}
	if operation.Operation == ast.Mutation {
		field := operation.SelectionSet[0].(*ast.Field).Name
		for _, repo := range s.world.Repos {
			for _, item := range repo.Items {
				if fmt.Sprint("PR_", item.ID) == variables["id"] {
					item.Draft = field == "convertPullRequestToDraft"
					return object{field: object{"pullRequest": object{"isDraft": item.Draft}}}, nil
				}
				for _, thread := range item.Threads {
					if fmt.Sprint("PRRT_", thread.ID) == variables["id"] && field == "resolveReviewThread" {
						thread.Resolved = true
						return object{field: object{"thread": object{"isResolved": true}}}, nil
					}
				}
			}
		}
		return nil, missing
	}
	repo := s.world.Seen(fmt.Sprintf("%s/%s", variables["owner"], variables["name"]), user)
	if repo == nil {
		return nil, missing
	}
	number := int64(variables["number"].(float64))
	pull, issue := repo.Item(task.Pull, number), repo.Item(task.Issue, number)
	if pull == nil && issue == nil {
		return nil, missing
	}
	data := object{}
	if pull != nil {
		data["pullRequest"] = object{"reviewThreads": s.connection(s.threadNodes(pull), variables)}
	}
	if issue != nil {
		data["issue"] = object{"closedByPullRequestsReferences": s.connection(s.closers(issue), variables)}
	}
	return object{"repository": data}, nil
}

func (s *server) threadNodes(pull *forgeworld.Item) []object {
	var nodes []object
	for _, thread := range pull.Threads {
		nodes = append(nodes, object{
			"id": fmt.Sprint("PRRT_", thread.ID), "isResolved": thread.Resolved, "isOutdated": thread.Commit != pull.HeadCommit(s.t),
			"comments": object{"nodes": []object{{"fullDatabaseId": fmt.Sprint(thread.Comments[0].ID)}}},
		})
	}
	return nodes
}

func (s *server) closers(issue *forgeworld.Item) []object {
	states := map[forge.ItemState]string{forge.Open: "OPEN", forge.Closed: "CLOSED", forge.Merged: "MERGED"}
	var nodes []object
	for _, event := range issue.Events {
		if event.Kind == "connected" {
			nodes = append(nodes, object{
				"number": event.Source.Number, "state": states[event.Source.State], "url": "https://github.example/p",
				"repository": object{"nameWithOwner": event.Source.Repo.Name},
			})
		}
	}
	return nodes
}

// connection gives two nodes at a time, so that pages are turned.
func (s *server) connection(nodes []object, variables map[string]any) object {
	start := 0
	if after, given := variables["after"].(string); given {
		_, _ = fmt.Sscan(after, &start)
	}
	end := min(start+2, len(nodes))
	return object{
		"nodes":    nodes[min(start, len(nodes)):end],
		"pageInfo": object{"hasNextPage": end < len(nodes), "endCursor": fmt.Sprint(end)},
	}
}

// project keeps the fields that were asked for.
func (s *server) project(selection ast.SelectionSet, value any) any {
	switch value := value.(type) {
	case []object:
		all := []any{}
		for _, one := range value {
			all = append(all, s.project(selection, one))
		}
		return all
	case object:
		kept := object{}
		for _, one := range selection {
			field := one.(*ast.Field)
			inner, known := value[field.Name]
			if !known {
				s.t.Errorf("the test server has no field %s", field.Name)
			}
			kept[field.Name] = s.project(field.SelectionSet, inner)
		}
		return kept
	default:
		return value
	}
}
