package access

import (
	"slices"
	"strings"

	"github.com/toryo-dev/toryo/internal/task"
)

// Role is what a token, and later a signed-in person, may do.
type Role string

// The roles.
const (
	Viewer   Role = "viewer"   // look at everything
	Operator Role = "operator" // and steer tasks: stop, pause, resume, retry
	Admin    Role = "admin"    // and manage tokens, people and settings
	Agent    Role = "agent"    // take tasks and report on them; nothing else
)

// Anyone is what an operation asks for that every valid token may use. Nobody
// has it as a role.
const Anyone Role = ""

// Roles lists the roles.
var Roles = []Role{Admin, Operator, Viewer, Agent}

// rank orders the roles of people. An agent is not among them: it sees the tasks
// that it holds, and what people see is not for it.
var rank = map[Role]int{Viewer: 1, Operator: 2, Admin: 3}

// ParseRole reads the name of a role.
func ParseRole(name string) (Role, error) {
	if !slices.Contains(Roles, Role(name)) {
		return "", task.Errorf(task.Usage, "there is no role %q", name).
			WithHint("use one of %s", strings.Join(RoleNames(), ", "))
	}
	return Role(name), nil
}

// RoleNames lists the names of the roles.
func RoleNames() []string {
	names := make([]string, len(Roles))
	for i, role := range Roles {
		names[i] = string(role)
	}
	return names
}

// Includes reports whether someone with role r may do what needs the given role.
func (r Role) Includes(needed Role) bool {
	if r == needed || needed == Anyone {
		return true
	}
	return rank[needed] > 0 && rank[r] > rank[needed]
}
