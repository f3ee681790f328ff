package mirror

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

// git runs the git program, with an environment in which nothing but what we say
// has a say.
type git struct {
	program string
	hooks   string
	maxFile int64
}

// command is one run of git.
type command struct {
	dir    string // a repository; empty for none
	args   []string
	remote *forge.Remote // what the command talks to, if anything
	input  io.Reader
}

// safety is given to every command.
var safety = []string{
	"-c", "core.hooksPath=/dev/null",
	"-c", "core.fsmonitor=false",
	"-c", "core.askPass=",
	"-c", "credential.helper=",
	"-c", "http.followRedirects=false",
	"-c", "http.lowSpeedLimit=1000",
	"-c", "http.lowSpeedTime=60",
	"-c", "submodule.recurse=false",
	"-c", "push.recurseSubmodules=no",
	"-c", "fetch.recurseSubmodules=false",
	"-c", "fetch.fsckObjects=true",
	"-c", "receive.fsckObjects=true",
	"-c", "gc.auto=0",
	"-c", "maintenance.auto=false",
}

// tolerated are faults of objects that old and well-meant repositories have and
// that harm nobody. Whatever could harm whoever checks it out is not here.
var tolerated = []string{
	"zeroPaddedFilemode", "missingSpaceBeforeDate", "badTimezone", "missingTaggerEntry", "zeroPaddedDate",
	"missingEmail", "missingNameBeforeEmail", "missingSpaceBeforeEmail", "badEmail", "badName", "badDate", "badDateOverflow",
}

func tolerance(what string) []string {
	var args []string
	for _, fault := range tolerated {
		args = append(args, "-c", what+".fsck."+fault+"=ignore")
	}
	return args
}

// environment is all that git sees of ours: where programs are, and how to reach
// the network.
func (g git) environment() []string {
	env := []string{
		"LC_ALL=C", "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_ATTR_NOSYSTEM=1",
		"GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0", "GIT_ADVICE=0",
	}
	for _, name := range []string{
		"PATH", "TMPDIR", "http_proxy", "https_proxy", "no_proxy", "all_proxy", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY",
		"SSL_CERT_FILE", "SSL_CERT_DIR", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH",
	} {
		if value, set := os.LookupEnv(name); set {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// limited runs git with a limit on the size of the files that it writes, counted
// in blocks of 512 bytes.
const limited = `ulimit -f "$1" && shift && exec "$@"`

// run runs a command and returns what it wrote.
func (g git) run(ctx context.Context, c command) (string, error) {
	args := append([]string{"-c", limited, "sh", strconv.FormatInt(g.maxFile/512+1, 10), g.program}, safety...)
	args = append(args, tolerance("fetch")...)
	env := g.environment()
	protocols := ""
	var credential *os.File
	if c.remote != nil {
		protocol, helper, err := reach(*c.remote)
		if err != nil {
			return "", err
		}
		protocols = protocol
		args = append(args, helper...)
		if len(helper) > 0 {
			if credential, err = offer(*c.remote); err != nil {
				return "", err
			}
			defer func() { _ = credential.Close() }()
		}
	}
	env = append(env, "GIT_ALLOW_PROTOCOL="+protocols)
	if c.dir != "" {
		args = append(args, "--git-dir="+c.dir)
	}
	cmd := exec.CommandContext(ctx, "/bin/sh", append(args, c.args...)...)
	cmd.Env, cmd.Stdin, cmd.Dir = env, c.input, filepath.Dir(g.hooks)
	if credential != nil {
		cmd.ExtraFiles = []*os.File{credential} // becomes descriptor 3
	}
	endGently(cmd)
	var output, trouble bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &tail{Buffer: &trouble}
	if err := cmd.Run(); err != nil {
		if ended := ctx.Err(); ended != nil {
			err = ended
		}
		return "", &failure{what: c.args[0], trouble: hide(trouble.String(), c.remote), err: err}
	}
	return output.String(), nil
}

// helper is a credential helper. It reads one line with the user name and one
// with the password from descriptor 3. The shell's read takes no more of a pipe
// than that, so that each run of the helper finds its own two lines.
const helper = `!f() { [ "$1" = get ] || exit 0; IFS= read -r u <&3 && IFS= read -r p <&3 && printf 'username=%s\npassword=%s\n' "$u" "$p"; }; f`

// reach returns the protocol that a remote needs and how git comes by the
// credential for it: for this address, no other.
func reach(remote forge.Remote) (protocol string, args []string, err error) {
	address, err := url.Parse(remote.URL)
	if err != nil || strings.HasPrefix(remote.URL, "-") {
		return "", nil, task.Errorf(task.Invalid, "the address of the repository cannot be read")
	}
	switch address.Scheme {
	case "https", "http":
	case "", "file":
		return "file", nil, nil
	default:
		return "", nil, task.Errorf(task.Unsupported, "git over %s is not supported", address.Scheme)
	}
	if address.User != nil {
		return "", nil, task.Errorf(task.Invalid, "the address of the repository has a credential in it")
	}
	if remote.Password == "" {
		return address.Scheme, nil, nil
	}
	place := address.Scheme + "://" + address.Host
	return address.Scheme, []string{"-c", "credential." + place + ".helper=" + helper}, nil
}

// offer returns a pipe with the credential in it, several times over: git may ask
// more than once. It all fits into the pipe's buffer.
func offer(remote forge.Remote) (*os.File, error) {
	const times, buffer = 8, 16 << 10
	lines := remote.Username + "\n" + remote.Password + "\n"
	if strings.Count(lines, "\n") != 2 || times*len(lines) > buffer {
		return nil, task.Errorf(task.Invalid, "the credential for git is too long or has a line break in it")
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, task.Wrap(task.Internal, err, "cannot hand git the credential")
	}
	_, err = writer.WriteString(strings.Repeat(lines, times))
	if closeErr := writer.Close(); err != nil || closeErr != nil {
		_ = reader.Close()
		return nil, task.Errorf(task.Internal, "cannot hand git the credential")
	}
	return reader, nil
}

// hide removes the credential from what git says, should it ever say it.
func hide(text string, remote *forge.Remote) string {
	if remote == nil || remote.Password == "" {
		return text
	}
	text = strings.ReplaceAll(text, remote.Password, "***")
	return strings.ReplaceAll(text, url.QueryEscape(remote.Password), "***")
}

// tail keeps the end of what is written to it.
type tail struct{ *bytes.Buffer }

const maxTail = 4 << 10

func (t *tail) Write(p []byte) (int, error) {
	n := len(p)
	if n > maxTail {
		p = p[n-maxTail:]
	}
	if excess := t.Len() + len(p) - maxTail; excess > 0 {
		t.Next(excess)
	}
	_, err := t.Buffer.Write(p)
	return n, err
}

// failure is what git said when it failed.
type failure struct {
	what    string
	trouble string
	err     error
}

func (f *failure) Error() string {
	text := fmt.Sprintf("git %s: %v", f.what, f.err)
	if said := strings.Join(strings.Fields(forge.Clean(f.trouble)), " "); said != "" {
		text += ": " + said
	}
	return text
}

func (f *failure) Unwrap() error { return f.err }
