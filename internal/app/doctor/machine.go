package doctor

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/app/reach"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

// Git checks for the git program, which the server also serves repositories
// with.
func Git(ctx context.Context) Finding {
	finding := Finding{Name: "git", Status: Missing, Hint: "install git 2.38 or newer, for example:", Command: "sudo apt-get install git"}
	version, err := output(ctx, "git", "version")
	if err != nil {
		finding.Found = "not found: " + err.Error()
		return finding
	}
	programs, err := output(ctx, "git", "--exec-path")
	if err != nil {
		finding.Found = version + ", but it does not say where its programs are: " + err.Error()
		return finding
	}
	if _, err := os.Stat(filepath.Join(programs, "git-http-backend")); err != nil {
		finding.Found = version + ", but without git http-backend"
		return finding
	}
	return Finding{Name: finding.Name, Status: OK, Found: strings.TrimPrefix(version, "git version ")}
}

// Bubblewrap checks that a sandbox can be started without a container engine.
func Bubblewrap(ctx context.Context) Finding {
	finding := Finding{Name: bubblewrap, Status: Warning, Hint: "install it, for example:", Command: "sudo apt-get install bubblewrap"}
	version, err := output(ctx, "bwrap", "--version")
	if err != nil {
		finding.Found = "not found: " + err.Error()
		return finding
	}
	if _, err := output(ctx, "bwrap", "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "true"); err != nil {
		finding.Found = version + ", but it cannot start a sandbox: " + err.Error()
		finding.Command = allowNamespaces("/proc/sys/kernel")
		finding.Hint = "allow user namespaces to ordinary users (sysctl kernel.unprivileged_userns_clone=1, or on Ubuntu kernel.apparmor_restrict_unprivileged_userns=0)"
		return finding
	}
	return Finding{Name: finding.Name, Status: OK, Found: strings.TrimPrefix(version, "bubblewrap ")}
}

// allowNamespaces is the command that lets ordinary users make user namespaces, by the first of the
// settings that the kernel has: those of Ubuntu and of Debian. It is empty if it has neither.
func allowNamespaces(settings string) string {
	for _, one := range []struct{ name, value string }{
		{"apparmor_restrict_unprivileged_userns", "0"}, {"unprivileged_userns_clone", "1"},
	} {
		is, err := os.ReadFile(filepath.Join(settings, one.name))
		if err == nil && strings.TrimSpace(string(is)) != one.value {
			return "sudo sysctl -w kernel." + one.name + "=" + one.value
		}
	}
	return ""
}

const bubblewrap = "bubblewrap"

const containerEngine = "container engine"

const defaultEngine = "unix:///var/run/docker.sock"

// ContainerEngine checks for a container engine that speaks the Docker API, at
// the address in DOCKER_HOST or at the usual one.
func ContainerEngine(address string) Check {
	if address == "" {
		address = defaultEngine
	}
	return func(ctx context.Context) Finding {
		finding := Finding{
			Name: containerEngine, Status: Warning,
			Hint: "install a container engine and let this user use it, or set DOCKER_HOST to where it is; for example:", Command: "sudo apt-get install docker.io",
		}
		version, err := engineVersion(ctx, address)
		if err != nil {
			finding.Found = fmt.Sprintf("none at %s: %v", address, reach.Brief(err))
			return finding
		}
		return Finding{Name: finding.Name, Status: OK, Found: fmt.Sprintf("%s at %s", version, address)}
	}
}

func engineVersion(ctx context.Context, address string) (string, error) {
	engine, err := url.Parse(address)
	if err != nil {
		return "", err
	}
	network, at := "tcp", engine.Host
	if engine.Scheme == "unix" {
		network, at = "unix", engine.Path
	}
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, at)
		},
	}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://engine/version", nil)
	if err != nil {
		return "", err
	}
	answer, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = answer.Body.Close() }()
	var said struct{ Version string }
	if err := json.NewDecoder(answer.Body).Decode(&said); err != nil {
		return "", fmt.Errorf("it does not speak the Docker API: %w", err)
	}
	return said.Version, nil
}

// Cluster checks for a cluster that sandboxes can run in, if one is configured: by
// asking it, which says what it found.
func Cluster(ask func(ctx context.Context) (found string, err error)) Check {
	return func(ctx context.Context) Finding {
		found, err := ask(ctx)
		if err != nil {
			return Finding{Name: "kubernetes", Status: Missing, Found: err.Error(), Hint: "see docs/environments.md, or choose another sandbox.kind"}
		}
		return Finding{Name: "kubernetes", Status: OK, Found: found}
	}
}

// Landlock checks for the weakest way to confine code, which does without any
// program. It asks the kernel by version, which fails with what is missing.
func Landlock(version func() (int, error)) Check {
	return func(context.Context) Finding {
		number, err := version()
		if err != nil {
			return Finding{Name: landlock, Status: Warning, Found: "not there: " + err.Error(), Hint: "none is needed where there is bubblewrap or a container engine"}
		}
		return Finding{Name: landlock, Weak: true, Status: OK, Found: fmt.Sprintf("ABI %d: weak, for the demo and your own folders, not for tasks from a forge", number)}
	}
}

const landlock = "landlock"

// ControlGroups says who keeps the limits of bubblewrap and landlock: the kernel, or
// a count several times a second. It asks by version, which fails with the reason.
func ControlGroups(version func() (int, error)) Finding {
	number, err := version()
	if err != nil {
		return Finding{
			Name: "control groups", Status: Warning,
			Found: "none for this program, so the memory of bubblewrap and landlock sandboxes is counted several times a second: " + err.Error(),
			Hint:  "run the agent as a service with Delegate=yes, or in a container",
		}
	}
	return Finding{Name: "control groups", Status: OK, Found: fmt.Sprintf("version %d: the kernel keeps the limits of bubblewrap and landlock sandboxes", number)}
}

// Choose chooses the sandbox that is configured as an agent does, and says which one that is.
type Choose func(ctx context.Context) (name string, err error)

// Sandbox says whether the sandbox of that kind works, by choosing it as an agent does: an agent
// whose sandbox does not work ends. Ways are what the checks of all ways have found.
func Sandbox(ctx context.Context, kind string, choose Choose, ways ...Finding) Finding {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	chosen, err := choose(ctx)
	switch {
	case err == nil && chosen == landlock:
		return Finding{
			Name: "sandbox", Status: Warning, Found: landlock + ", as configured: weak, for the demo and your own folders",
			Hint:    "for tasks from a forge set sandbox.kind: " + automatic + " in toryo.yaml, and install bubblewrap or a container engine",
			Command: setUp + " --sandbox " + automatic,
		}
	case err == nil && kind == automatic:
		return Finding{Name: "sandbox", Status: OK, Found: chosen + ", which " + automatic + " takes here"}
	case err == nil:
		return Finding{Name: "sandbox", Status: OK, Found: chosen + ", as configured"}
	}
	found, hint := explained(err, "see docs/environments.md")
	finding := Finding{Name: "sandbox", Status: Missing, Found: found, Hint: hint}
	if kind == automatic {
		if slices.ContainsFunc(ways, func(way Finding) bool { return way.Weak && way.Status == OK }) {
			finding.Found += "; landlock serves the demo and your own folders, not tasks from a forge"
		}
		finding.Command = commandOf(bubblewrap, ways)
		return finding
	}
	finding.Found = kind + " is configured (sandbox.kind), but it does not work: " + found
	return withAnother(finding, kind, ways)
}

// commandOf is the command of the finding about a way to run code apart.
func commandOf(name string, ways []Finding) string {
	for _, way := range ways {
		if way.Name == name {
			return way.Command
		}
	}
	return ""
}

// withAnother adds how to get the sandbox that is configured, and that another one works.
func withAnother(finding Finding, kind string, ways []Finding) Finding {
	works := ""
	for _, way := range ways {
		switch {
		case way.Name == wayOf(kind) && way.Status != OK:
			finding.Hint, finding.Command = way.Hint, way.Command
		case way.Name != wayOf(kind) && way.Status == OK && !way.Weak && works == "":
			works = way.Name
		}
	}
	if works != "" {
		finding.Hint = "set sandbox.kind: " + automatic + " in toryo.yaml, since " + works + " works here; or " + finding.Hint
	}
	return finding
}

// automatic is the kind that stands for the best sandbox that there is.
const automatic = "auto"

// WaysOf are the findings about ways to run code apart that matter for the configured kind: all
// for the automatic choice, and else the one that is configured. [Sandbox] says what is wrong
// with that.
func WaysOf(kind string, ways []Finding) []Finding {
	if kind == automatic {
		return ways
	}
	var own []Finding
	for _, way := range ways {
		if way.Name == wayOf(kind) && way.Status == OK {
			own = append(own, way)
		}
	}
	return own
}

// wayOf is the name of the finding about a kind of sandbox.
func wayOf(kind string) string {
	if kind == "docker" {
		return containerEngine
	}
	return kind
}

// explained is an error in words for people, and what to do about it, if it says so.
func explained(err error, otherwise string) (found, hint string) {
	coded, isCoded := task.AsError(err)
	if !isCoded {
		return err.Error(), otherwise
	}
	found = coded.Message
	if coded.Err != nil {
		found += ": " + textfmt.Shorten(textfmt.OneLine(coded.Err.Error()), longestReason)
	}
	return found, cmp.Or(coded.Hint, otherwise)
}

// longestReason is how many characters are shown of what another program said.
const longestReason = 300

func output(ctx context.Context, name string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, name, args...)
	command.Env = []string{"PATH=" + os.Getenv("PATH")} // no key and no token of ours
	command.WaitDelay = time.Second                     // what it has started may hold its output
	said, err := command.CombinedOutput()
	line, _, _ := strings.Cut(strings.TrimSpace(string(said)), "\n")
	if err != nil && line != "" {
		return "", fmt.Errorf("%w: %s", err, line)
	}
	return line, err
}
