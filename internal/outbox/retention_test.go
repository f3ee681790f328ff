package outbox_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"testing"

	"github.com/toryo-dev/toryo/internal/outbox"
	"github.com/toryo-dev/toryo/internal/store"
)

// kept are the writes that stay whole. What is read again is among them: the state of a commit
// says what was published, and a merge until when it may be made. The others are small.
var kept = []outbox.Payload{
	outbox.AddLabel{}, outbox.RemoveLabel{}, outbox.StateLabel{}, outbox.Assign{}, outbox.ReviewAnswered{}, outbox.ResolveThread{},
	outbox.MergePull{}, outbox.React{}, outbox.Unreact{}, outbox.SetStatus{}, outbox.PublishBranch{},
}

// The store empties writes that are texts when they are old, and removes those that replace
// each other. It knows them by their kinds. Each kind is emptied, removed or kept.
func TestKindsThatTheStoreEmpties(t *testing.T) {
	t.Parallel()
	lists := [][]string{store.TextKinds, store.PassingKinds, nil}
	for _, payload := range kept {
		lists[2] = append(lists[2], payload.Kind())
	}
	kinds := kindsOf(t)
	for _, kind := range kinds {
		count := 0
		for _, list := range lists {
			count += len(slices.DeleteFunc(slices.Clone(list), func(one string) bool { return one != kind }))
		}
		if count != 1 {
			t.Errorf("%s is in the lists %d times", kind, count)
		}
	}
	for _, kind := range slices.Concat(lists...) {
		if !slices.Contains(kinds, kind) {
			t.Errorf("there is no kind %s", kind)
		}
	}
}

// kindsOf are the kinds of all payloads of this package.
func kindsOf(t *testing.T) (kinds []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "action.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, declared := range file.Decls {
		method, is := declared.(*ast.FuncDecl)
		if !is || method.Name.Name != "Kind" {
			continue
		}
		switch returned := method.Body.List[0].(*ast.ReturnStmt).Results[0].(type) {
		case *ast.SelectorExpr:
			if returned.Sel.Name != "OpenPullKind" {
				t.Fatalf("what is the kind %s?", returned.Sel.Name)
			}
			kinds = append(kinds, store.OpenPullKind)
		case *ast.BasicLit:
			kind, err := strconv.Unquote(returned.Value)
			if err != nil {
				t.Fatal(err)
			}
			kinds = append(kinds, kind)
		}
	}
	if len(kinds) < 10 {
		t.Fatalf("found are only the kinds %q", kinds)
	}
	return kinds
}
