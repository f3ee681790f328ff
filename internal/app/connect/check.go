package connect

import (
	"context"
	"fmt"
	"strings"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

// Whom asks the forge whose token it is.
func Whom(ctx context.Context, f Forge, kind Kind, address string) (string, error) {
	login, err := f.Self(ctx)
	return login, Explain(err, kind, address)
}

// Problem is something that is missing, and how to fix it.
type Problem struct {
	What string `json:"what"`
	Fix  string `json:"fix"`
	// Required says that Toryo does not work without it.
	Required bool `json:"required"`
}

// RepositoryCheck is what is known of a repository.
type RepositoryCheck struct {
	Name     string             `json:"name"`
	Rights   []forge.RightCheck `json:"rights"`
	Problems []Problem          `json:"problems,omitempty"`
}

// Usable reports whether nothing is missing that Toryo cannot do without.
func (c RepositoryCheck) Usable() bool {
	for _, problem := range c.Problems {
		if problem.Required {
			return false
		}
	}
	return true
}

// Has reports whether a right is not missing.
func (c RepositoryCheck) Has(right forge.Right) bool {
	for _, one := range c.Rights {
		if one.Right == right {
			return one.State != forge.RightMissing
		}
	}
	return true
}

// CheckRepository looks for a repository, and tries what we need in it right by right. The
// error is that the forge does not answer, or that there is no such repository for the login.
func CheckRepository(ctx context.Context, f Forge, kind Kind, address, login, name string) (RepositoryCheck, error) {
	found, err := f.Repository(ctx, name)
	if task.CodeOf(err) == task.NotFound {
		return RepositoryCheck{}, task.Errorf(task.NotFound, "%s has no repository %s that %s can see", address, name, login).
			WithHint("check the name; if it is private, let %s write to it on %s", login, settingsOf(address, name))
	}
	if err != nil {
		return RepositoryCheck{}, Explain(err, kind, address)
	}
	check := RepositoryCheck{Name: found.Name}
	if found.Archived {
		check.Problems = append(check.Problems, Problem{What: found.Name + " is archived", Fix: "unarchive it, or choose another", Required: true})
	}
	if found.DefaultBranch == "" {
		check.Problems = append(check.Problems, Problem{What: found.Name + " has no commit yet", Fix: "push a first one", Required: true})
	}
	check.Rights, err = f.CheckRights(ctx, found.Name)
	if err != nil {
		return check, Explain(err, kind, address)
	}
	check.Problems = append(check.Problems, missingRights(check.Rights, kind, address)...)
	return check, nil
}

// settingsOf is where people are let into a repository.
func settingsOf(address, name string) string {
	return strings.TrimSuffix(address, "/") + "/" + name
}

// missingRights are the problems with rights, each with what gives the right.
func missingRights(rights []forge.RightCheck, kind Kind, address string) []Problem {
	required := map[forge.Right]bool{}
	for _, needed := range forge.NeededRights {
		required[needed.Right] = needed.Required
	}
	var problems []Problem
	for _, right := range rights {
		if right.State != forge.RightMissing {
			continue
		}
		problem := Problem{What: "it has no permission to " + RightText(right.Right), Required: required[right.Right]}
		if right.Found != "" {
			problem.What += ": " + right.Found
		}
		if right.Given != "" {
			problem.Fix = fmt.Sprintf("give it %s; tokens are made at %s", right.Given, kind.TokenPage(address))
		} else {
			problem.Fix = fmt.Sprintf("it needs %s: %s", kind.Needs, kind.TokenPage(address))
		}
		problems = append(problems, problem)
	}
	return problems
}

// RightText is a right in words, after "it has permission to".
func RightText(right forge.Right) string {
	switch right {
	case forge.ReadSelf:
		return "read the owner of the token"
	case forge.ReadCode:
		return "read code"
	case forge.Push:
		return "push branches"
	case forge.PushWorkflows:
		return "push changes to workflows"
	case forge.ReadItems:
		return "read issues and pull requests"
	case forge.CommentOn:
		return "comment"
	case forge.LabelItems:
		return "set labels"
	case forge.OpenPulls:
		return "open and review pull requests"
	case forge.SetStatuses:
		return "set commit statuses"
	case forge.ReadChecks:
		return "read checks and their logs"
	case forge.ManageHooks:
		return "create webhooks"
	}
	return string(right)
}

// Owner is whose repositories they are. On a forge on which an installation has one owner,
// that they have several is an error.
func Owner(kind Kind, repositories []string) (string, error) {
	owner := ""
	for _, name := range repositories {
		first, _, found := strings.Cut(name, "/")
		switch {
		case !found || first == "":
			return "", task.Errorf(task.Invalid, "%q does not name a repository", name).WithHint("write it as owner/name")
		case owner == "" || strings.EqualFold(owner, first):
			owner = first
		case kind.OneOwner():
			return "", task.Errorf(task.Invalid, "%s and %s have different owners", repositories[0], name).
				WithHint("choose repositories of one owner: an installation works on those of one owner on %s", kind.Title)
		}
	}
	return owner, nil
}
