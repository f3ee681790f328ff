package oidc

import (
	"testing"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/task"
)

// Groups decide on the role, the highest counts, and nobody comes in unnamed.
func TestRules(t *testing.T) {
	t.Parallel()
	rules := Rules{
		LoginClaim: "preferred_username", GroupsClaim: "groups",
		Admins: []string{"platform"}, Operators: []string{"developers", "testers"}, Viewers: []string{"staff"}, Users: []string{"Guest"},
	}
	for _, test := range []struct {
		login  string
		groups any
		want   access.Role
	}{
		{"alice", []any{"staff", "platform", "developers"}, access.Admin},
		{"alice", []any{"testers"}, access.Operator},
		{"alice", []any{"staff"}, access.Viewer},
		{"alice", "staff", access.Viewer},
		{"alice", []any{"Platform", "staff "}, ""},
		{"alice", []any{7, nil, map[string]any{"platform": true}}, ""},
		{"alice", map[string]any{"platform": true}, ""},
		{"alice", nil, ""},
		{"guest", nil, access.Viewer},
		{"guest", []any{"platform"}, access.Admin},
	} {
		who, err := rules.identify("https://id.example.org", claims{"sub": "1", "preferred_username": test.login, "groups": test.groups})
		if who.Role != test.want || (err == nil) != (test.want != "") || err != nil && task.CodeOf(err) != task.Forbidden {
			t.Errorf("%s in %v: %+v, %v", test.login, test.groups, who, err)
		}
	}
	everyone := Rules{LoginClaim: "preferred_username", GroupsClaim: "realm_access.roles", Operators: []string{"dev"}, Users: []string{Everyone}}
	nested := claims{"sub": "1", "preferred_username": "x", "realm_access": map[string]any{"roles": []any{"dev"}}}
	if who, err := everyone.identify("i", nested); err != nil || who.Role != access.Operator {
		t.Errorf("groups in an object: %+v, %v", who, err)
	}
	if who, err := everyone.identify("i", claims{"sub": "1", "preferred_username": "x"}); err != nil || who.Role != access.Viewer {
		t.Errorf("anybody: %+v, %v", who, err)
	}
}

// An address is a login only when the provider has made sure whose it is.
func TestAddressAsLogin(t *testing.T) {
	t.Parallel()
	rules := Rules{LoginClaim: "email", Users: []string{Everyone}}
	for verified, let := range map[any]bool{true: true, "true": true, false: false, "false": false, nil: false} {
		_, err := rules.identify("i", claims{"sub": "1", "email": "a@example.org", "email_verified": verified})
		if (err == nil) != let {
			t.Errorf("verified %v: %v", verified, err)
		}
	}
}
