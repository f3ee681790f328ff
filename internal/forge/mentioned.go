package forge

import (
	"slices"
	"strings"

	"github.com/toryo-dev/toryo/internal/lazyregexp"
	"github.com/toryo-dev/toryo/internal/task"
)

// Mentions reports whether a text addresses one of the logins as @login. What stands in code
// or in a line that quotes somebody else does not count.
func Mentions(body string, logins ...string) bool {
	found := mention.FindAllStringSubmatchIndex(body, -1)
	if found == nil {
		return false
	}
	code := codeRanges(body)
	return slices.ContainsFunc(found, func(at []int) bool {
		start, name := at[0], strings.TrimRight(body[at[4]:at[5]], ".-")
		line := body[strings.LastIndexByte(body[:start], '\n')+1 : start]
		if start > 0 && alphanumeric(body[start-1]) || code.contains(start) || inAddress(body, start) || strings.HasPrefix(strings.TrimSpace(line), ">") {
			return false
		}
		return slices.ContainsFunc(logins, func(login string) bool { return task.SameLogin(strings.TrimSuffix(login, "[bot]"), name) })
	})
}

// gitlabBot are the accounts that GitLab makes for access tokens of projects and groups.
var gitlabBot = lazyregexp.New(`^(?:project|group)_[0-9]+_bot(?:_[0-9a-z]+)?$`)

// Automated reports whether a login is known to be no person's by its name: that of a GitHub
// App, of an access token on GitLab, or of an account that is gone. Other accounts of programs
// cannot be told from people's.
func Automated(login string) bool {
	return strings.HasSuffix(login, "[bot]") || gitlabBot.MatchString(login) || task.SameLogin(login, Ghost)
}
