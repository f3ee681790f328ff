package command

import (
	"slices"
	"testing"

	"github.com/toryo-dev/toryo/internal/task"
)

// A completed name means one item: the forge is left out where only one has such an item, and an
// item with two tasks is offered once.
func TestShortNames(t *testing.T) {
	t.Parallel()
	of := func(forge task.Forge, repository string, number int64) task.Task {
		return task.Task{Key: task.Key{Forge: forge, Repository: repository, Kind: task.Issue, Number: number}}
	}
	var names []string
	for name := range shortNames([]task.Task{
		of(task.Gitea, "team/app", 4), of(task.Gitea, "team/app", 3), of(task.GitHub, "team/app", 3), of(task.Gitea, "team/app", 4), of(task.Gitea, "team/app", 3),
	}) {
		names = append(names, name)
	}
	if want := []string{"team/app#4", "gitea:team/app#3", "github:team/app#3"}; !slices.Equal(names, want) {
		t.Errorf("completed are %q, want %q", names, want)
	}
}
