package server

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/forge/dummy"
	"github.com/toryo-dev/toryo/internal/task"
)

// A run is given the items that its own item's text names: of the same repository,
// not confidential, a few of them and not more of each than it can use.
func TestReferencedItems(t *testing.T) {
	t.Parallel()
	w := onSQLite(t)
	w.forge.AddRepository("team/other", forge.Remote{})
	about := func(repository string, kind task.ItemKind, title string) task.Key {
		key := w.forge.AddItem(repository, kind, "bob", title)
		w.forge.Change(key, func(i *forge.Item) { i.Body = "about " + title })
		return key
	}
	one, pull := about(repository, task.Issue, "one"), about(repository, task.Pull, "two")
	secret, linked, unnamed := about(repository, task.Issue, "secret"), about(repository, task.Issue, "linked"), about(repository, task.Issue, "unnamed")
	w.forge.Change(secret, func(i *forge.Item) { i.Confidential = true })
	var many []string
	for i := range 12 {
		key := about(repository, task.Issue, fmt.Sprint("many ", i))
		w.forge.Change(key, func(i *forge.Item) { i.Body = strings.Repeat("長", 20_000) })
		many = append(many, fmt.Sprintf("#%d", key.Number))
	}
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"none":                {"nothing here, nor C#1 or a&#35; or x#2", nil},
		"an issue and a pull": {fmt.Sprintf("see #%d, (#%d) and again #%[1]d", one.Number, pull.Number), []string{"issue one", "pull two"}},
		"by its full name":    {fmt.Sprintf("%s#%d", repository, one.Number), []string{"issue one"}},
		"another repository":  {"team/other#1", nil},
		"confidential":        {fmt.Sprintf("#%d", secret.Number), nil},
		"nobody has it":       {"#99999 and #999999999999999999", nil},
		"by its address":      {fmt.Sprintf("https://forge.test/%s/issues/%d.", repository, linked.Number), []string{"issue linked"}},
		"another address":     {fmt.Sprintf("https://forge.test/team/other/issues/%d", unnamed.Number), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := w.issue(t, "Fix "+name)
			w.forge.Change(made.Key, func(i *forge.Item) {
				i.Body, i.URL = test.text, fmt.Sprintf("https://forge.test/%s/issues/%d", repository, made.Key.Number)
			})
			held, _ := w.claim(t, made.ID)
			items, err := held.References(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, item := range items {
				got = append(got, item.Kind+" "+item.Title)
				if item.Body != "about "+item.Title {
					t.Errorf("%s says %q", item.Title, item.Body)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("it is given (-want +got)\n%s", diff)
			}
		})
	}
	t.Run("many and long", func(t *testing.T) {
		t.Parallel()
		made := w.issue(t, "Fix all of "+strings.Join(many, " "))
		held, _ := w.claim(t, made.ID)
		items, err := held.References(t.Context())
		if err != nil || len(items) != 8 {
			t.Fatalf("%d items, %v", len(items), err)
		}
		for _, item := range items {
			if len(item.Body) > 17<<10 || !strings.HasSuffix(item.Body, "長\n[cut]") {
				t.Errorf("%s has %d bytes and ends with %q", item.Title, len(item.Body), item.Body[len(item.Body)-10:])
			}
		}
	})
}

// A forge that does not answer is not the same as an item that is not there.
func TestReferencedItemsCannotBeRead(t *testing.T) {
	t.Parallel()
	w := onSQLite(t)
	other := w.forge.AddItem(repository, task.Issue, "bob", "other")
	made := w.issue(t, fmt.Sprintf("As in #%d", other.Number))
	held, _ := w.claim(t, made.ID)
	w.forge.SetFaults(func(call dummy.Call) dummy.Fault {
		if call.Method == "Item" && call.Key == other {
			return dummy.Refuse
		}
		return dummy.None
	})
	if items, err := held.References(t.Context()); task.CodeOf(err) != task.Unavailable {
		t.Errorf("it is given %v, %v", items, err)
	}
}
