package task

import (
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Name is how a person names a task: by its id or the beginning of it, by its item, or by an
// address. Which fields are set follows from that; the others narrow nothing.
type Name struct {
	// ID is the beginning of the task's id, or all of it, in small letters.
	ID string

	Forge      Forge
	Repository string
	Kind       ItemKind // Pull after "!"; after "#" it is either, where both have the same numbers
	Number     int64

	// Host and Path are those of the item's address on its forge, up to the repository. Path
	// is the repository, with a folder before it if the forge is in one.
	Host string
	Path string
}

const (
	// shortestID is how much of an id has to be given.
	shortestID = 4
	// longestName bounds what is looked at.
	longestName = 2000
	// longestPath bounds the parts of a path that are looked at.
	longestPath = 30
)

// NameHint says how tasks are named, for errors and help.
const NameHint = "name it like team/app#3, gitea:team/app#3, #3, team/app!4 for a merge request, by at least 4 characters of its id, or by the address of its page or of its item"

var (
	itemName  = regexp.MustCompile(`^(?:([a-z]+):)?([^\s#!:]+)?([#!])([0-9]{1,18})$`)
	idName    = regexp.MustCompile(`^[0-9a-fA-F][0-9a-fA-F-]{3,35}$`)
	wholeName = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
)

// ParseName reads how somebody names a task:
//
//	gitea:team/app#3                         the item, with its forge
//	team/app#3                               without it
//	#3                                       a number alone
//	team/app!4, !4                           a pull (merge) request
//	0199c2a4                                 the beginning of the id
//	https://toryo.example.com/tasks/0199…    the page of the task
//	https://gitea.example.com/team/app/issues/3
//
// What does not name a task by its form alone is a Usage error. Whether there is such a task
// is for the caller to find out; see FindTask of package store.
func ParseName(text string) (Name, error) {
	text = strings.TrimSpace(text)
	if len(text) > longestName {
		return Name{}, Errorf(Usage, "the name of the task is longer than %d characters", longestName).WithHint("%s", NameHint)
	}
	if address, is := webAddress(text); is {
		return nameOfAddress(text, address)
	}
	if parts := itemName.FindStringSubmatch(text); parts != nil {
		return nameOfItem(text, parts)
	}
	if idName.MatchString(text) {
		return Name{ID: strings.ToLower(text)}, nil
	}
	if text != "" && len(text) < shortestID {
		return Name{}, Errorf(Usage, "%q is too short to name a task", text).WithHint("%s", NameHint)
	}
	return Name{}, noName(text)
}

func noName(text string) error {
	return Errorf(Usage, "%q does not name a task", text).WithHint("%s", NameHint)
}

func webAddress(text string) (*url.URL, bool) {
	address, err := url.Parse(text)
	return address, err == nil && (address.Scheme == "https" || address.Scheme == "http") && address.Host != ""
}

// nameOfItem reads what itemName has found.
func nameOfItem(text string, parts []string) (Name, error) {
	name := Name{Forge: Forge(parts[1]), Repository: parts[2]}
	if name.Forge != "" && !name.Forge.known() {
		return Name{}, Errorf(Usage, "%q does not name a task: there is no forge %q", text, parts[1]).WithHint("use one of github, gitlab, gitea, board")
	}
	if name.Repository != "" && validateRepository(name.Repository) != nil {
		return Name{}, Errorf(Usage, "%q does not name a task: %q is not a repository", text, name.Repository).WithHint("give it as owner/name")
	}
	if parts[3] == Pull.mark() {
		name.Kind = Pull
	}
	var err error
	if name.Number, err = strconv.ParseInt(parts[4], 10, 64); err != nil || name.Number < 1 {
		return Name{}, noName(text)
	}
	return name, nil
}

// nameOfAddress reads the address of a page of Toryo, or of an item on its forge.
func nameOfAddress(text string, address *url.URL) (Name, error) {
	parts := strings.Split(strings.Trim(address.Path, "/"), "/")
	if len(parts) >= 2 && parts[0] == "tasks" && wholeName.MatchString(strings.ToLower(parts[1])) {
		return Name{ID: strings.ToLower(parts[1])}, nil
	}
	name, is := itemOfAddress(address)
	if !is {
		return Name{}, Errorf(Usage, "%q is neither the address of a task's page nor that of an issue or a pull request", text).WithHint("%s", NameHint)
	}
	return name, nil
}

// addressMarks come before the number of an item in its address, on all forges.
var addressMarks = map[string]ItemKind{
	"issues": Issue, "work_items": Issue, "pull": Pull, "pulls": Pull, "merge_requests": Pull,
}

// itemOfAddress reads the address of an item: the repository, the kind and the number.
// What comes after the number, such as the tab of a page, does not matter.
func itemOfAddress(address *url.URL) (Name, bool) {
	parts := strings.Split(strings.Trim(address.Path, "/"), "/")
	parts = parts[:min(len(parts), longestPath)]
	for i := 2; i+1 < len(parts); i++ { // the repository has two parts at least
		kind, is := addressMarks[parts[i]]
		number, err := strconv.ParseInt(parts[i+1], 10, 64)
		if !is || err != nil || number < 1 {
			continue
		}
		repository := parts[:i]
		dashed := repository[i-1] == "-" // GitLab
		if dashed {
			repository = repository[:i-1]
		}
		if repository[0] == "board" && len(repository) == 3 && !dashed {
			// Toryo's own pages, by whichever address people reach them.
			return Name{Forge: Board, Repository: strings.Join(repository[1:], "/"), Kind: kind, Number: number}, true
		}
		return Name{Host: strings.ToLower(address.Host), Path: strings.Join(repository, "/"), Kind: kind, Number: number}, true
	}
	return Name{}, false
}

// Whole reports whether the name is a whole id.
func (n Name) Whole() bool { return wholeName.MatchString(n.ID) }

// Repositories are the repositories that the task may be in; none if it may be in any.
func (n Name) Repositories() []string {
	if n.Repository != "" {
		return []string{n.Repository}
	}
	if n.Path == "" {
		return nil
	}
	var all []string // the forge may be in a folder of its host
	for parts := strings.Split(n.Path, "/"); len(parts) >= 2; parts = parts[1:] {
		all = append(all, strings.Join(parts, "/"))
	}
	return all
}

// Matches reports whether the task can be meant.
func (n Name) Matches(t Task) bool {
	if n.ID != "" {
		return strings.HasPrefix(string(t.ID), n.ID)
	}
	repositories := n.Repositories()
	inRepository := len(repositories) == 0 || slices.ContainsFunc(repositories, func(name string) bool { return strings.EqualFold(name, t.Key.Repository) })
	switch {
	case n.Number != t.Key.Number, n.Forge != "" && n.Forge != t.Key.Forge, !inRepository, !n.matchesKind(t.Key):
		return false
	case n.Host == "":
		return true
	}
	address, is := webAddress(t.URL)
	if !is {
		return false
	}
	at, is := itemOfAddress(address)
	return is && at.Host == n.Host && strings.EqualFold(at.Path, n.Path)
}

// matchesKind compares the kind of item. Issues and pull requests of a repository have
// numbers of their own on GitLab alone; elsewhere a number says it all, and people write
// "#" for both.
func (n Name) matchesKind(key Key) bool {
	switch {
	case key.Forge != GitLab && n.Kind != Pull, key.Forge != GitLab && n.Host != "":
		return true
	case n.Kind == "":
		return key.Kind == Issue
	}
	return key.Kind == n.Kind
}
