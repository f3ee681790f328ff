package access_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/store/sqlite"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/testkit"
)

func TestRolesIncludeOneAnother(t *testing.T) {
	t.Parallel()
	may := map[access.Role][]access.Role{
		access.Viewer:   {access.Anyone, access.Viewer},
		access.Operator: {access.Anyone, access.Viewer, access.Operator},
		access.Admin:    {access.Anyone, access.Viewer, access.Operator, access.Admin},
		access.Agent:    {access.Anyone, access.Agent},
	}
	for _, has := range access.Roles {
		allowed := map[access.Role]bool{}
		for _, needed := range may[has] {
			allowed[needed] = true
		}
		for _, needed := range append([]access.Role{access.Anyone, "unheard-of"}, access.Roles...) {
			if has.Includes(needed) != allowed[needed] {
				t.Errorf("%s includes %q: %v", has, needed, has.Includes(needed))
			}
		}
	}
}

func TestParseRole(t *testing.T) {
	t.Parallel()
	for _, name := range access.RoleNames() {
		if role, err := access.ParseRole(name); err != nil || string(role) != name {
			t.Errorf("%s is %q, %v", name, role, err)
		}
	}
	for _, name := range []string{"", "root", "Admin"} {
		if _, err := access.ParseRole(name); task.CodeOf(err) != task.Usage || !strings.Contains(err.Error(), "operator") {
			t.Errorf("%q gives %v; want a usage error that names the roles", name, err)
		}
	}
}

func TestTokenLife(t *testing.T) {
	t.Parallel()
	database, err := sqlite.Open(t.Context(), testkit.SQLite(t, sqlite.Open))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = database.Close() }()
	tokens := access.Tokens{Store: database, Now: time.Now}

	secret, err := tokens.Create(t.Context(), access.Operator, "night shift")
	if err != nil {
		t.Fatal(err)
	}
	token, err := access.CheckToken(t.Context(), database, secret)
	if err != nil || token.Role != string(access.Operator) || token.Name != "night shift" {
		t.Fatalf("the token is %+v, %v", token, err)
	}
	if bytes.Contains(token.Hash, []byte(secret)) || !bytes.Equal(token.Hash, access.Hash(secret)) {
		t.Error("what is stored is not the hash of the token")
	}
	for _, wrong := range []string{"", "toryo_", secret + "x", secret[:len(secret)-1], strings.ToUpper(secret)} {
		if _, err := access.CheckToken(t.Context(), database, wrong); task.CodeOf(err) != task.Unauthorized {
			t.Errorf("%q gives %v", wrong, err)
		}
	}
	if err := database.RevokeToken(t.Context(), token.ID, time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := access.CheckToken(t.Context(), database, secret); task.CodeOf(err) != task.Unauthorized {
		t.Errorf("a revoked token gives %v", err)
	}
	if _, err := tokens.Create(t.Context(), "root", ""); task.CodeOf(err) != task.Usage {
		t.Errorf("a token with a role that does not exist gives %v", err)
	}
}

func TestSecretsDiffer(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 1000 {
		secret := access.NewSecret()
		if seen[secret] || len(secret) < 40 {
			t.Fatalf("%q is short or was made before", secret)
		}
		seen[secret] = true
	}
}

// An agent cannot be known by the name of one with another token.
func TestAgentNames(t *testing.T) {
	t.Parallel()
	one, two := store.Token{Name: "one"}, store.Token{Name: "two"}
	for _, name := range []struct {
		token    store.Token
		id, want string
	}{{one, "one", "one"}, {one, "builder", "one/builder"}, {two, "one", "two/one"}, {one, "", "one/"}} {
		if got := access.AgentName(name.token, name.id); got != name.want {
			t.Errorf("%q with the token of %q is known as %q", name.id, name.token.Name, got)
		}
	}
}

// The token that a server has made for itself is known besides those of the database, as an
// operator's, and is not put there.
func TestOwnToken(t *testing.T) {
	t.Parallel()
	database, err := sqlite.Open(t.Context(), testkit.SQLite(t, sqlite.Open))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = database.Close() }()
	known := access.WithOwnToken(database, "toryo_own")
	token, err := known.TokenByHash(t.Context(), access.Hash("toryo_own"))
	if err != nil || token.Role != string(access.Operator) {
		t.Errorf("it is %+v, %v", token, err)
	}
	for _, other := range []string{"", "toryo_ow", "toryo_own2"} {
		if token, err := known.TokenByHash(t.Context(), access.Hash(other)); task.CodeOf(err) != task.NotFound {
			t.Errorf("%q is %+v, %v", other, token, err)
		}
	}
	if token, err := database.TokenByHash(t.Context(), access.Hash("toryo_own")); task.CodeOf(err) != task.NotFound {
		t.Errorf("the database has %+v, %v", token, err)
	}
}
