package egress

import (
	"bufio"
	_ "embed"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/toryo-dev/toryo/internal/task"
)

//go:embed registries.txt
var registries string

// List is a set of hosts with ports.
type List struct {
	exact  map[string][]listed
	suffix map[string][]listed // with the leading dot
}

// listed is one port of a host.
type listed struct {
	port  int
	trust Trust
}

var webPorts = []int{80, 443}

// Registries is the list that comes with the program, with other hosts added.
func Registries(more ...string) (*List, error) {
	list, err := NewList(more...)
	if err != nil {
		return nil, err
	}
	scanner := bufio.NewScanner(strings.NewReader(registries))
	for scanner.Scan() {
		line, _, _ := strings.Cut(scanner.Text(), "#")
		if line = strings.TrimSpace(line); line != "" {
			if err := list.add(line, Known); err != nil {
				return nil, err
			}
		}
	}
	return list, nil
}

// NewList is a list of these hosts alone.
func NewList(hosts ...string) (*List, error) {
	list := &List{exact: map[string][]listed{}, suffix: map[string][]listed{}}
	for _, host := range hosts {
		if err := list.add(host, Configured); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func (l *List) add(entry string, trust Trust) error {
	host, ports := entry, webPorts
	if name, port, err := net.SplitHostPort(entry); err == nil {
		number, err := strconv.Atoi(port)
		if err != nil || number < 1 || number > 65535 {
			return task.Errorf(task.BadConfig, "%q has a bad port", entry)
		}
		host, ports = name, []int{number}
	}
	host = normal(host)
	rest, below := strings.CutPrefix(host, "*")
	name := strings.TrimPrefix(rest, ".")
	if name == "" || strings.ContainsAny(name, "*/ @") || (below && !strings.HasPrefix(rest, ".")) {
		return task.Errorf(task.BadConfig, "%q is not a host, nor \"*.\" and a host", entry)
	}
	if _, err := netip.ParseAddr(host); err == nil {
		trust = Literal
	}
	to, key := l.exact, host
	if below {
		to, key = l.suffix, rest
	}
	for _, port := range ports {
		to[key] = append(to[key], listed{port, trust})
	}
	return nil
}

// Trust is what the list says of the host with the port: the most that an entry
// gives.
func (l *List) Trust(host string, port int) Trust {
	host = normal(host)
	trust := most(l.exact[host], port)
	for at := strings.IndexByte(host, '.'); at >= 0; {
		trust = max(trust, most(l.suffix[host[at:]], port))
		next := strings.IndexByte(host[at+1:], '.')
		if next < 0 {
			break
		}
		at += 1 + next
	}
	return trust
}

func most(entries []listed, port int) Trust {
	trust := Unlisted
	for _, entry := range entries {
		if entry.port == port {
			trust = max(trust, entry.trust)
		}
	}
	return trust
}

// normal is the one way to write a host's name.
func normal(host string) string {
	return strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
}
