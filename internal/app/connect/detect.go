package connect

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/doctor"
	"github.com/toryo-dev/toryo/internal/task"
)

// Surroundings are what is looked at.
type Surroundings struct {
	Folder  string // in which the program was started
	Environ []string
	// Sandboxes are the checks of the ways to run code apart from the machine.
	Sandboxes []doctor.Check
	// Choose chooses among them as an agent does where the kind is left to it.
	Choose doctor.Choose
	// HTTP asks forges what they are. It follows no redirections.
	HTTP *http.Client
}

// Found is what the machine has.
type Found struct {
	Git       doctor.Finding     `json:"git"`
	Sandboxes []doctor.Finding   `json:"sandboxes"`
	Sandbox   doctor.Finding     `json:"sandbox"` // whether there is one for tasks from a forge
	Keys      []config.VendorKey `json:"keys,omitempty"`
	Tokens    []FoundToken       `json:"tokens,omitempty"`
	// Folder is the top of the git repository that the program was started in, or empty.
	Folder  string   `json:"folder,omitempty"`
	Remotes []Remote `json:"remotes,omitempty"`
}

// FoundToken is a token of a forge in the environment.
type FoundToken struct {
	Forge    task.Forge `json:"forge"`
	Variable string     `json:"variable"`
}

// Detect looks at the machine. Nothing is changed, and no credential is sent anywhere: the
// hosts of git remotes are asked which forge they are.
func Detect(ctx context.Context, at Surroundings) (Found, error) {
	checks := doctor.Examine(ctx, append([]doctor.Check{doctor.Git}, at.Sandboxes...))
	found := Found{Git: checks[0], Sandboxes: checks[1:], Sandbox: doctor.Sandbox(ctx, "auto", at.Choose, checks[1:]...), Keys: config.FindVendorKeys(at.Environ)}
	for _, kind := range Kinds {
		if variable, _ := config.FindToken(kind.Forge, kind.URL, at.Environ); variable != "" {
			found.Tokens = append(found.Tokens, FoundToken{kind.Forge, variable})
		}
	}
	if found.Git.Status != doctor.OK {
		return found, ctx.Err()
	}
	top, remotes, err := Remotes(ctx, at.Folder)
	if err != nil {
		return found, err
	}
	found.Folder, found.Remotes = top, recogniseAll(ctx, at.HTTP, remotes)
	return found, ctx.Err()
}

// recognisingAll is how long all hosts together may take to say what they are: a person waits
// for the first question meanwhile.
const recognisingAll = 8 * time.Second

// recogniseAll asks each host once. One that does not answer stays unknown.
func recogniseAll(ctx context.Context, client *http.Client, remotes []Remote) []Remote {
	ctx, cancel := context.WithTimeout(ctx, recognisingAll)
	defer cancel()
	known := map[string]task.Forge{}
	all := make([]Remote, 0, len(remotes))
	for _, remote := range remotes {
		for _, address := range remote.addresses() {
			name, asked := known[address]
			if !asked {
				answer, _ := Recognise(ctx, client, address) // unknown is no error here
				name = answer.Forge
				known[address] = name
			}
			if name != "" {
				remote = remote.On(name)
				break
			}
		}
		all = append(all, remote)
	}
	return all
}

// addresses are where the forge of a remote may be: at the top of the host, or below the path
// that is before the repository.
func (r Remote) addresses() []string {
	all := []string{r.URL}
	if parts := strings.Split(r.Path, "/"); len(parts) > 2 {
		all = append(all, r.URL+"/"+strings.Join(parts[:len(parts)-2], "/"))
	}
	return all
}
