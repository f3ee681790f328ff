package assignment

import (
	"strconv"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

// longestSlug bounds what the title gives to the name of a branch.
const longestSlug = 40

// BranchOf names the branch that the work on an item goes to: the head of a pull
// request whose branch is in the repository, and else one of our own.
func BranchOf(item forge.Item) string {
	if item.Key.Kind == task.Pull && !item.Fork && item.Head != "" {
		return item.Head
	}
	name := "toryo/"
	if item.Key.Kind == task.Pull {
		name += "pull-" // on some forges an issue may have the same number
	}
	name += strconv.FormatInt(item.Key.Number, 10)
	if words := textfmt.Slug(item.Title, longestSlug); words != "" {
		name += "-" + words
	}
	return name
}

// headRef is where the head of a pull request is found in a copy of its
// repository.
func headRef(item forge.Item) string {
	number := strconv.FormatInt(item.Key.Number, 10)
	switch {
	case !item.Fork:
		return "refs/heads/" + item.Head
	case item.Key.Forge == task.GitLab:
		return "refs/merge-requests/" + number + "/head"
	default:
		return "refs/pull/" + number + "/head"
	}
}
