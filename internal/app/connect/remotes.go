package connect

import (
	"context"
	"net"
	"net/url"
	"strings"

	"github.com/toryo-dev/toryo/internal/git"
	"github.com/toryo-dev/toryo/internal/lazyregexp"
	"github.com/toryo-dev/toryo/internal/task"
)

// Remote is a remote of the git repository that the program was started in.
type Remote struct {
	Name string `json:"name"` // as git knows it
	// URL is the address of the forge as far as the remote tells; one by SSH does not tell
	// the port of the pages.
	URL string `json:"url"`
	// Path is all behind the host: for a forge below a path that is more than the repository.
	Path string `json:"-"`
	// Forge is empty until it is recognised: see [RecogniseRemotes].
	Forge      task.Forge `json:"forge,omitempty"`
	Repository string     `json:"repository"`
}

// maxRemotes is how many remotes are looked at.
const maxRemotes = 8

// Remotes lists the remotes of the git repository that a folder is in, and where that
// repository is; both are empty if it is in none. The remote "origin" is the first, unless
// there is an "upstream", which is where the issues are.
func Remotes(ctx context.Context, folder string) (top string, remotes []Remote, err error) {
	program, err := git.Find()
	if err != nil {
		return "", nil, err
	}
	top, err = program.Run(ctx, git.Command{From: folder, Args: []string{"rev-parse", "--show-toplevel"}})
	if err != nil {
		return "", nil, ctx.Err() // it is no repository, or git does not trust it
	}
	listed, err := program.Run(ctx, git.Command{From: folder, Args: []string{"config", "--local", "--get-regexp", `^remote\..*\.url$`}})
	if err != nil {
		return strings.TrimRight(top, "\r\n"), nil, ctx.Err() // it has none
	}
	for line := range strings.Lines(listed) {
		key, address, _ := strings.Cut(strings.TrimRight(line, "\r\n"), " ")
		name := strings.TrimSuffix(strings.TrimPrefix(key, "remote."), ".url")
		if remote, is := ParseRemote(name, address); is && len(remotes) < maxRemotes {
			remotes = append(remotes, remote)
		}
	}
	return strings.TrimRight(top, "\r\n"), ordered(remotes), nil
}

// ordered puts first what is most likely meant.
func ordered(remotes []Remote) []Remote {
	var first, second, others []Remote
	for _, remote := range remotes {
		switch remote.Name {
		case "upstream":
			first = append(first, remote)
		case "origin":
			second = append(second, remote)
		default:
			others = append(others, remote)
		}
	}
	return append(append(first, second...), others...)
}

// scpPattern is how people write addresses of SSH: git@host:owner/name.git.
var scpPattern = lazyregexp.New(`^(?:[^@/:]+@)?([^/:@]+):([^/].*)$`)

// ParseRemote reads the address of a remote. It is false for a folder of this machine and for
// what has no owner. A credential in the address is dropped.
func ParseRemote(name, address string) (Remote, bool) {
	var base, path string
	if at, err := url.Parse(address); err == nil && at.Host != "" {
		switch at.Scheme {
		case "http", "https":
			base = at.Scheme + "://" + at.Host
		case "ssh", "git", "git+ssh":
			base = "https://" + joinHost(at.Hostname())
		default:
			return Remote{}, false
		}
		path = at.Path
	} else if parts := scpPattern.FindStringSubmatch(address); parts != nil {
		base, path = "https://"+parts[1], parts[2]
	}
	path = strings.TrimSuffix(strings.Trim(path, "/"), ".git")
	if base == "" || strings.Count(path, "/") < 1 {
		return Remote{}, false
	}
	remote := Remote{Name: name, URL: Address(base), Path: path, Repository: path}
	if known := wellKnownHost(remote.URL); known != "" {
		return remote.On(known), true
	}
	return remote, true
}

// joinHost writes a host as it stands in an address.
func joinHost(host string) string {
	if ip := net.ParseIP(host); ip != nil && ip.To4() == nil {
		return "[" + host + "]"
	}
	return host
}

// On is the remote as it is on a forge: GitLab has groups in groups, the others have owners
// only, so that what comes before is a part of their address.
func (r Remote) On(name task.Forge) Remote {
	r.Forge = name
	if name == task.GitLab {
		return r
	}
	parts := strings.Split(r.Path, "/")
	r.Repository = strings.Join(parts[len(parts)-2:], "/")
	if before := parts[:len(parts)-2]; len(before) > 0 && wellKnownHost(r.URL) == "" {
		r.URL += "/" + strings.Join(before, "/")
	}
	return r
}
