package git

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/toryo-dev/toryo/internal/task"
)

// Program is the git program. Its methods may be called by several goroutines.
type Program struct {
	path string
	// MaxFile is how large a file that git writes may be; 0 means no limit.
	MaxFile int64
	// Settings are given to every command, in the form "name=value".
	Settings []string
	// Config is a file to be read as the user's configuration; empty for none.
	Config string
	// CAFile has the certificates by which servers are known, in place of what the
	// environment and the system say; empty for the latter.
	CAFile string
}

// Find finds the program. It fails with NotReady if there is none.
func Find() (*Program, error) {
	path, err := exec.LookPath("git")
	if err != nil {
		return nil, task.Wrap(task.NotReady, err, "the git program is missing").WithHint("install git 2.38 or newer")
	}
	return &Program{path: path}, nil
}

// Remote is a repository that git talks to.
type Remote struct {
	URL      string
	Username string
	Password string
}

// Command is one run of git.
type Command struct {
	Dir   string // git's directory; empty for none
	Tree  string // the work tree; empty for none
	Index string // the index file; empty for the one in Dir
	// Objects is a folder with objects besides those in Dir; empty for none.
	Objects string
	// Alternate is a folder with objects of another repository, which are only read; empty for none.
	// It is not given together with Objects.
	Alternate string
	Args      []string
	Remote    *Remote // what the command talks to, if anything
	Input     io.Reader
	Output    io.Writer // where the output goes; nil to have it returned
	From      string    // the folder to run in; empty for one where nothing is
	// Memory is how many bytes of memory git may take; 0 means no limit.
	Memory int64
}

// safety is given to every command.
var safety = []string{
	"core.hooksPath=/dev/null",
	"core.fsmonitor=false",
	"core.untrackedCache=false",
	"core.askPass=",
	"core.pager=cat",
	"core.attributesFile=/dev/null",
	"core.excludesFile=/dev/null",
	"credential.helper=",
	"http.followRedirects=false",
	"http.lowSpeedLimit=1000",
	"http.lowSpeedTime=60",
	"submodule.recurse=false",
	"push.recurseSubmodules=no",
	"push.gpgSign=false",
	"fetch.recurseSubmodules=false",
	"diff.external=",
	"diff.ignoreSubmodules=all",
	"status.submoduleSummary=false",
	"gc.auto=0",
	"maintenance.auto=false",
}

// Environment is all that git sees of ours: where programs are, and how to reach
// the network.
func (p *Program) Environment() []string {
	config := "/dev/null"
	if p.Config != "" {
		config = p.Config
	}
	env := []string{
		"LC_ALL=C", "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + config, "GIT_ATTR_NOSYSTEM=1",
		"GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0", "GIT_ADVICE=0", "GIT_LITERAL_PATHSPECS=1", "GIT_NO_REPLACE_OBJECTS=1",
	}
	for _, name := range []string{"PATH", "TMPDIR"} {
		if value, set := os.LookupEnv(name); set {
			env = append(env, name+"="+value)
		}
	}
	env = append(env, Network()...)
	if p.CAFile != "" {
		env = append(env, "GIT_SSL_CAINFO="+p.CAFile) // the last one counts
	}
	return env
}

// The environment variables that say how to reach the network; those of proxies are also read in
// small letters.
var (
	proxyVariables     = []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"}
	authorityVariables = []string{"SSL_CERT_FILE", "SSL_CERT_DIR", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH"}
)

// NetworkVariables are the names of all of them.
func NetworkVariables() (names []string) {
	for _, name := range slices.Concat(proxyVariables, []string{"NO_PROXY"}) {
		names = append(names, name, strings.ToLower(name))
	}
	return append(names, authorityVariables...)
}

// Network is what git is told of them. It uses proxies as everything else of ours does: names in
// capitals count first, HTTP_PROXY too, which git does not read; and none is used to this machine
// itself, where our own server may be.
func Network() (env []string) {
	for _, name := range proxyVariables {
		lower := strings.ToLower(name)
		if value := cmp.Or(os.Getenv(name), os.Getenv(lower)); value != "" {
			env = append(env, lower+"="+value)
		}
	}
	for _, name := range authorityVariables {
		if value, set := os.LookupEnv(name); set {
			env = append(env, name+"="+value)
		}
	}
	switch without := cmp.Or(os.Getenv("NO_PROXY"), os.Getenv("no_proxy")); without {
	case "":
		return append(env, "no_proxy="+thisMachine)
	case "*": // none is used
		return append(env, "no_proxy=*")
	default:
		return append(env, "no_proxy="+without+","+thisMachine)
	}
}

// thisMachine are the addresses to which Go uses no proxy.
const thisMachine = "localhost,127.0.0.1,::1"

// Path is where the program is.
func (p *Program) Path() string { return p.path }

// Flags are the arguments by which git is told all settings, and more that go
// over them, in the form "name=value".
func (p *Program) Flags(more ...string) []string {
	var flags []string
	for _, setting := range slices.Concat(safety, p.Settings, more) {
		flags = append(flags, "-c", setting)
	}
	return flags
}

// limited runs git with a limit on the size of the files that it writes, counted
// in blocks of 512 bytes, and one on its memory, counted in kilobytes.
const limited = `ulimit -f "$1" && { [ "$2" = unlimited ] || ulimit -v "$2"; } && shift 2 && exec "$@"`

// Run runs a command and returns what it wrote, also when it fails. An error that
// is one of git is a [*RunError].
func (p *Program) Run(ctx context.Context, c Command) (string, error) {
	cmd := p.process(ctx, c)
	cmd.Env, cmd.Stdin, cmd.Dir = p.variables(c), c.Input, c.From
	if c.From == "" {
		cmd.Dir = string(os.PathSeparator)
	}
	if c.Remote != nil {
		protocol, helper, err := reach(*c.Remote)
		if err != nil {
			return "", err
		}
		cmd.Env = append(cmd.Env, "GIT_ALLOW_PROTOCOL="+protocol)
		if helper {
			credential, err := offer(*c.Remote)
			if err != nil {
				return "", err
			}
			defer func() { _ = credential.Close() }()
			cmd.ExtraFiles = []*os.File{credential} // becomes descriptor 3
		}
	}
	EndGently(cmd)
	var output, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &tail{Buffer: &stderr}
	if c.Output != nil {
		cmd.Stdout = c.Output
	}
	if err := cmd.Run(); err != nil {
		failed := &RunError{What: c.Args[0], Stderr: hide(stderr.String(), c.Remote), Err: err}
		if ctx.Err() != nil {
			failed.Err, failed.Ended = context.Cause(ctx), true
		}
		return output.String(), failed
	}
	return output.String(), nil
}

// small are commands that write no files, or a few lines, so that the limit on the size of files
// means nothing to them. They are started without the shell that sets it.
var small = map[string]bool{
	"cat-file": true, "config": true, "for-each-ref": true, "init": true, "ls-tree": true, "merge-base": true,
	"rev-list": true, "rev-parse": true, "symbolic-ref": true, "update-ref": true,
}

// process is git, or the shell that sets the limits and becomes git.
func (p *Program) process(ctx context.Context, c Command) *exec.Cmd {
	args := p.arguments(c)
	if c.Memory == 0 && small[c.Args[0]] {
		return exec.CommandContext(ctx, p.path, args...)
	}
	limit := "unlimited"
	if p.MaxFile > 0 {
		limit = strconv.FormatInt(p.MaxFile/512+1, 10)
	}
	memory := "unlimited"
	if c.Memory > 0 && runtime.GOOS == "linux" { // elsewhere shells may refuse it
		memory = strconv.FormatInt(c.Memory>>10, 10)
	}
	return exec.CommandContext(ctx, "/bin/sh", append([]string{"-c", limited, "sh", limit, memory, p.path}, args...)...)
}

// arguments are those of git.
func (p *Program) arguments(c Command) []string {
	args := p.Flags()
	if c.Remote != nil {
		if place := placeOf(*c.Remote); place != "" {
			args = append(args, "-c", "credential."+place+".helper="+helper)
		}
	}
	if c.Dir != "" {
		args = append(args, "--git-dir="+c.Dir)
	}
	if c.Tree != "" {
		args = append(args, "--work-tree="+c.Tree)
	}
	return append(args, c.Args...)
}

// variables are the environment of a command, which may talk to nobody unless
// more is said.
func (p *Program) variables(c Command) []string {
	env := append(p.Environment(), "GIT_ALLOW_PROTOCOL=")
	if c.Index != "" {
		env = append(env, "GIT_INDEX_FILE="+c.Index)
	}
	if c.Objects != "" {
		env = append(env, "GIT_OBJECT_DIRECTORY="+c.Objects, "GIT_ALTERNATE_OBJECT_DIRECTORIES="+filepath.Join(c.Dir, "objects"))
	}
	if c.Alternate != "" {
		env = append(env, "GIT_ALTERNATE_OBJECT_DIRECTORIES="+`"`+escaped.Replace(c.Alternate)+`"`)
	}
	return env
}

// escaped is a path as git reads it between quotation marks. Without them it would end at a colon.
var escaped = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// helper is a credential helper. It reads one line with the user name and one
// with the password from descriptor 3. The shell's read takes no more of a pipe
// than that, so that each run of the helper finds its own two lines.
const helper = `!f() { [ "$1" = get ] || exit 0; IFS= read -r u <&3 && IFS= read -r p <&3 && printf 'username=%s\npassword=%s\n' "$u" "$p"; }; f`

// reach returns the protocol that a remote needs, and whether it needs a
// credential.
func reach(remote Remote) (protocol string, credential bool, err error) {
	if strings.HasPrefix(remote.URL, "/") {
		return "file", false, nil
	}
	address, err := url.Parse(remote.URL)
	if err != nil || strings.HasPrefix(remote.URL, "-") {
		return "", false, task.Errorf(task.Invalid, "the address of the repository cannot be read")
	}
	switch address.Scheme {
	case "https", "http":
	case "", "file":
		return "file", false, nil
	default:
		return "", false, task.Errorf(task.Unsupported, "git over %s is not supported", address.Scheme)
	}
	if address.User != nil {
		return "", false, task.Errorf(task.Invalid, "the address of the repository has a credential in it")
	}
	return address.Scheme, remote.Password != "", nil
}

// placeOf is the part of the address that the credential is for: this one, no
// other. It is empty if there is no credential.
func placeOf(remote Remote) string {
	address, err := url.Parse(remote.URL)
	if err != nil || remote.Password == "" || address.Host == "" {
		return ""
	}
	return address.Scheme + "://" + address.Host
}

// offer returns a pipe with the credential in it, several times over: git may ask
// more than once. It all fits into the pipe's buffer.
func offer(remote Remote) (*os.File, error) {
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
func hide(text string, remote *Remote) string {
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
