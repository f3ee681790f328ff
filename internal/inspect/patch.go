package inspect

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"path"
	"strconv"
	"strings"

	"github.com/toryo-dev/toryo/internal/lazyregexp"
	"github.com/toryo-dev/toryo/internal/task"
)

// patch looks at the lines that the difference adds. Binary files are read as if they
// were text: a secret is one there too.
func (l *look) patch(ctx context.Context, base, commit string, entries map[string]entry, found findings) error {
	return l.read(ctx, l.room, differences(base, commit, "-p", "--text", "--unified=0", "--src-prefix=a/", "--dst-prefix=b/"), func(from *bufio.Reader) error {
		p := &parser{look: l, entries: entries, found: found}
		return p.parse(ctx, from)
	})
}

// parser reads a unified diff.
type parser struct {
	*look
	entries map[string]entry
	found   findings
	name    string // of the file that is being read; empty if it is gone
}

var hunkHeader = lazyregexp.New(`\A@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@`)

// parse reads the diff. How many lines of a file follow is said before them, so that no
// line of a file is taken for one of the diff.
func (p *parser) parse(ctx context.Context, from *bufio.Reader) error {
	for {
		line, err := p.line(from)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if name, is := bytes.CutPrefix(line, []byte("+++ ")); is {
			if p.name, err = newName(string(name)); err != nil {
				return err
			}
			continue
		}
		if head := hunkHeader.FindSubmatch(line); head != nil {
			if err := p.hunk(ctx, from, count(head[1]), int(number(head[2])), count(head[3])); err != nil {
				return err
			}
		}
	}
}

func (p *parser) line(from *bufio.Reader) ([]byte, error) {
	line, err := from.ReadBytes('\n')
	p.room -= int64(len(line))
	if errors.Is(err, io.EOF) && len(line) > 0 {
		err = nil
	}
	return bytes.TrimSuffix(line, []byte("\n")), err
}

func number(digits []byte) int64 {
	n, err := strconv.ParseInt(string(digits), 10, 32)
	if err != nil {
		return 0
	}
	return n
}

// count is how many lines a hunk has, which is one if it is not said.
func count(digits []byte) int64 {
	if digits == nil {
		return 1
	}
	return number(digits)
}

// newName is the name of the new file in a diff; empty if there is none.
func newName(text string) (string, error) {
	if strings.HasPrefix(text, `"`) {
		name, err := strconv.Unquote(strings.TrimSuffix(text, "\t"))
		if err != nil {
			return "", task.Wrap(task.Internal, err, "git writes a name that cannot be read")
		}
		return strings.TrimPrefix(name, "b/"), nil
	}
	name, is := strings.CutPrefix(strings.TrimSuffix(text, "\t"), "b/")
	if !is {
		return "", nil // /dev/null
	}
	return name, nil
}

const (
	// maxText is how much of a text is read at once, and overlap how much of it is
	// read again with what follows.
	maxText = 1 << 20
	overlap = 64 << 10
)

// hunk reads the lines of one hunk and looks at those that are added.
func (p *parser) hunk(ctx context.Context, from *bufio.Reader, removed int64, first int, added int64) error {
	var text []byte
	at := first // the number of the line that the text begins in
	for removed > 0 || added > 0 {
		line, err := p.line(from)
		if err != nil {
			return errors.Join(err, task.Errorf(task.Internal, "git's diff ends early"))
		}
		switch {
		case len(line) > 0 && line[0] == '-' && removed > 0:
			removed--
		case len(line) > 0 && line[0] == '+' && added > 0:
			added--
			text = append(append(text, line[1:]...), '\n')
			for len(text) > maxText {
				if err := p.text(ctx, at, string(text[:maxText])); err != nil {
					return err
				}
				at += bytes.Count(text[:maxText-overlap], []byte("\n"))
				text = append([]byte(nil), text[maxText-overlap:]...)
			}
		case len(line) > 0 && line[0] == '\\': // no line break at the end
		default:
			return task.Errorf(task.Internal, "git's diff has a line that belongs nowhere")
		}
	}
	return p.text(ctx, at, string(text))
}

// text looks at lines that follow each other, of which the first has the number.
func (p *parser) text(ctx context.Context, first int, text string) error {
	if text == "" || p.name == "" {
		return ctx.Err()
	}
	if strings.Contains(text, "\x00") {
		p.add(p.found, task.Finding{Kind: task.FindingBinary, Path: p.name})
	}
	p.secrets(first, text, p.options.Known, p.addAnyway)
	p.secrets(first, text, p.options.Recognised, p.add)
	if p.entries[p.name].newMode == symlink && leadsOut(p.name, strings.TrimSuffix(text, "\n")) {
		p.add(p.found, task.Finding{Kind: task.FindingLink, Path: p.name})
	}
	if attributeFiles.match(p.name) {
		for at, line := range lines(first, text) {
			if strings.Contains(strings.ToLower(line), "filter=") {
				p.add(p.found, task.Finding{Kind: task.FindingProtected, Path: p.name, Line: at, Detail: "a filter"})
			}
		}
	}
	if registryFiles.match(p.name) {
		return p.registries(ctx, first, text)
	}
	return ctx.Err()
}

// lines goes through the lines of a text with their numbers.
func lines(first int, text string) func(yield func(int, string) bool) {
	return func(yield func(int, string) bool) {
		for line := range strings.Lines(text) {
			if !yield(first, line) {
				return
			}
			first++
		}
	}
}

// secrets tells the lines in which a masker masks something; where it needs several
// lines to see it, the first of those.
func (p *parser) secrets(first int, text string, masker Masker, add func(findings, task.Finding)) {
	masked := masker.String(text)
	if masked == text {
		return
	}
	seen := false
	for at, line := range lines(first, text) {
		if masker.String(line) != line {
			seen = true
			add(p.found, task.Finding{Kind: task.FindingSecret, Path: p.name, Line: at})
		}
	}
	if !seen {
		same := 0
		for same < len(masked) && same < len(text) && masked[same] == text[same] {
			same++
		}
		add(p.found, task.Finding{Kind: task.FindingSecret, Path: p.name, Line: first + strings.Count(text[:same], "\n")})
	}
}

// leadsOut reports whether a link leads out of the repository, or into what git keeps
// there. It may go up at its beginning only: behind another link, up is somewhere else.
func leadsOut(name, target string) bool {
	if target == "" || strings.HasPrefix(target, "/") || strings.ContainsAny(target, "\\\x00") {
		return true
	}
	up, down := 0, false
	for part := range strings.SplitSeq(target, "/") {
		switch {
		case part == "" || part == ".":
		case part == ".." && down:
			return true
		case part == "..":
			up++
		case strings.EqualFold(part, ".git"):
			return true
		default:
			down = true
		}
	}
	return up > strings.Count(path.Clean(name), "/")
}

// hostIn finds hosts in addresses.
var hostIn = lazyregexp.New(`(?i)(?:[a-z][a-z0-9+.-]*://(?:[^/\s"'@]*@)?|git@)(\[[0-9a-f:.]+\]|[a-z0-9_.-]+)`)

// registries tells hosts that the file did not name before and that are no registries
// that everybody uses.
func (p *parser) registries(ctx context.Context, first int, text string) error {
	for at, line := range lines(first, text) {
		for _, host := range hostsIn(line) {
			if p.options.Registry(host) {
				continue
			}
			before, err := p.hostsBefore(ctx, p.entries[p.name])
			if err != nil {
				return err
			}
			if !before[host] {
				p.add(p.found, task.Finding{Kind: task.FindingHost, Path: p.name, Line: at, Detail: host})
			}
		}
	}
	return ctx.Err()
}

// hostsIn are the hosts of the addresses in a text.
func hostsIn(text string) []string {
	var hosts []string
	for _, match := range hostIn.FindAllStringSubmatch(text, -1) {
		if host := strings.ToLower(strings.TrimRight(match[1], ".")); host != "" {
			hosts = append(hosts, host)
		}
	}
	return hosts
}

// hostsBefore are the hosts that a file named before.
func (l *look) hostsBefore(ctx context.Context, of entry) (map[string]bool, error) {
	if of.oldMode == noFile || of.oldMode == "" || of.oldMode == submodule {
		return nil, nil
	}
	if known, is := l.hosts[of.oldHash]; is {
		return known, nil
	}
	known := map[string]bool{}
	err := l.read(ctx, maxRegistryFile, []string{"cat-file", "blob", of.oldHash}, func(from *bufio.Reader) error {
		for {
			line, err := from.ReadString('\n')
			for _, host := range hostsIn(line) {
				known[host] = true
			}
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
		}
	})
	l.hosts[of.oldHash] = known
	return known, err
}

// maxRegistryFile is how much is read of a file that says where packages come from.
const maxRegistryFile = 128 << 20
