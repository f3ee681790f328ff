package egress

import (
	"bufio"
	_ "embed"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/toryo-dev/toryo/internal/task"
)

//go:embed registries.txt
var registries string

// List is a set of hosts with ports.
type List struct {
	exact  map[string][]int
	suffix map[string][]int // with the leading dot
}

var webPorts = []int{80, 443}

// Registries is the list that comes with the program, with other hosts added.
func Registries(more ...string) (*List, error) {
	list := &List{exact: map[string][]int{}, suffix: map[string][]int{}}
	scanner := bufio.NewScanner(strings.NewReader(registries))
	for scanner.Scan() {
		line, _, _ := strings.Cut(scanner.Text(), "#")
		if line = strings.TrimSpace(line); line != "" {
			if err := list.add(line); err != nil {
				return nil, err
			}
		}
	}
	if err := list.addAll(more); err != nil {
		return nil, err
	}
	return list, nil
}

// NewList is a list of these hosts alone.
func NewList(hosts ...string) (*List, error) {
	list := &List{exact: map[string][]int{}, suffix: map[string][]int{}}
	if err := list.addAll(hosts); err != nil {
		return nil, err
	}
	return list, nil
}

func (l *List) addAll(hosts []string) error {
	for _, host := range hosts {
		if err := l.add(host); err != nil {
			return err
		}
	}
	return nil
}

func (l *List) add(entry string) error {
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
	if below {
		l.suffix[rest] = append(l.suffix[rest], ports...)
		return nil
	}
	l.exact[host] = append(l.exact[host], ports...)
	return nil
}

// Has reports whether the list names the host with the port.
func (l *List) Has(host string, port int) bool {
	host = normal(host)
	if slices.Contains(l.exact[host], port) {
		return true
	}
	for at := strings.IndexByte(host, '.'); at >= 0; {
		if slices.Contains(l.suffix[host[at:]], port) {
			return true
		}
		next := strings.IndexByte(host[at+1:], '.')
		if next < 0 {
			break
		}
		at += 1 + next
	}
	return false
}

// normal is the one way to write a host's name.
func normal(host string) string {
	return strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
}
