package broker

import (
	"strconv"
	"strings"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

// longestSlug bounds what the title gives to the name of a branch.
const longestSlug = 40

// branchOf names the branch that the work on an item goes to: the head of a pull
// request whose branch is in the repository, and else one of our own.
func branchOf(item forge.Item) string {
	if item.Key.Kind == task.Pull && !item.Fork && item.Head != "" {
		return item.Head
	}
	name := "toryo/"
	if item.Key.Kind == task.Pull {
		name += "pull-" // on some forges an issue may have the same number
	}
	name += strconv.FormatInt(item.Key.Number, 10)
	if words := slug(item.Title); words != "" {
		name += "-" + words
	}
	return name
}

// slug is the letters and digits of a title that every system takes in the name of
// a file, in words. Of a title in another script nothing may be left.
func slug(title string) string {
	words := strings.FieldsFunc(strings.ToLower(title), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	})
	text := ""
	for _, word := range words {
		if len(text)+len(word)+1 > longestSlug {
			break
		}
		if text != "" {
			text += "-"
		}
		text += word
	}
	return text
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
