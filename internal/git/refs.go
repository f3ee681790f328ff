package git

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/toryo-dev/toryo/internal/lazyregexp"
	"github.com/toryo-dev/toryo/internal/task"
)

// Refs is what a repository has besides its objects.
type Refs struct {
	Format   string            `json:"format"`             // of the hashes: sha1 or sha256
	Objects  map[string]string `json:"refs"`               // hash by name
	Symbolic map[string]string `json:"symbolic,omitempty"` // names by names, HEAD among them
	Shallow  []string          `json:"shallow,omitempty"`  // commits whose parents are not there
}

// head is the one ref that is not below refs/.
const head = "HEAD"

// tips are the hashes of all refs, one to a line.
func (r Refs) tips() string {
	tips := slices.Compact(slices.Sorted(maps.Values(r.Objects)))
	return strings.Join(tips, "\n") + "\n"
}

// RefFormat has for-each-ref write lines that ParseRef reads.
const RefFormat = "%(objectname) %(refname) %(symref)"

// Ref is a ref as for-each-ref lists it.
type Ref struct {
	Hash, Name string
	Target     string // the ref that a symbolic one stands for; else empty
}

// ParseRef reads a line of for-each-ref with RefFormat. Names have no ASCII space in them, but may
// have other spaces, and bytes that are not UTF-8.
func ParseRef(line string) (Ref, error) {
	fields := strings.Split(strings.TrimSuffix(line, "\n"), " ")
	if len(fields) != 3 {
		return Ref{}, task.Errorf(task.Internal, "git describes a ref as %q", line)
	}
	return Ref{fields[0], fields[1], fields[2]}, nil
}

// BranchFormat has for-each-ref write lines that ParseBranches reads.
const BranchFormat = "%(objectname) %(refname:lstrip=2)"

// ParseBranches reads what for-each-ref writes of refs/heads with BranchFormat: commits by the names of
// branches.
func ParseBranches(text string) map[string]string {
	branches := map[string]string{}
	for line := range strings.Lines(text) {
		commit, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		branches[name] = commit
	}
	return branches
}

// IsRefName reports whether git takes a text for the full name of a ref, such as
// "refs/heads/main".
func IsRefName(name string) bool {
	parts := strings.Split(name, "/")
	for _, part := range parts {
		if part == "" || strings.HasPrefix(part, ".") || strings.HasSuffix(part, ".lock") {
			return false
		}
	}
	control := func(r rune) bool { return r < ' ' || r == 0x7f }
	return len(parts) > 1 && !strings.ContainsFunc(name, control) && !strings.ContainsAny(name, " ~^:?*[\\") &&
		!strings.Contains(name, "..") && !strings.Contains(name, "@{") && !strings.HasSuffix(name, ".")
}

// The words that lines of Text begin with.
const (
	formatWord   = "format"
	objectWord   = "ref"
	symbolicWord = "symref"
	shallowWord  = "shallow"
)

// Text is a line for each ref, from which ParseRefs makes the same again. It is no JSON: names may have
// bytes that are not UTF-8, which JSON would change.
func (r Refs) Text() []byte {
	var text strings.Builder
	fmt.Fprintf(&text, "%s %s\n", formatWord, r.Format)
	for _, name := range slices.Sorted(maps.Keys(r.Objects)) {
		fmt.Fprintf(&text, "%s %s %s\n", objectWord, r.Objects[name], name)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Symbolic)) {
		fmt.Fprintf(&text, "%s %s %s\n", symbolicWord, r.Symbolic[name], name)
	}
	for _, hash := range r.Shallow {
		fmt.Fprintf(&text, "%s %s\n", shallowWord, hash)
	}
	return []byte(text.String())
}

// ParseRefs reads what Text has written. It fails with Invalid if that is not refs of a repository.
func ParseRefs(text []byte) (Refs, error) {
	refs := Refs{Objects: map[string]string{}, Symbolic: map[string]string{}}
	for line := range strings.Lines(string(text)) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), " ")
		switch word := fields[0]; {
		case word == formatWord && len(fields) == 2:
			refs.Format = fields[1]
		case word == objectWord && len(fields) == 3:
			refs.Objects[fields[2]] = fields[1]
		case word == symbolicWord && len(fields) == 3:
			refs.Symbolic[fields[2]] = fields[1]
		case word == shallowWord && len(fields) == 2:
			refs.Shallow = append(refs.Shallow, fields[1])
		default:
			return Refs{}, task.Errorf(task.Invalid, "%q describes no ref", line)
		}
	}
	return refs, refs.Check()
}

var (
	refName  = lazyregexp.New(`^refs/[^\x00-\x20\x7f]+$`)
	hashName = lazyregexp.New(`^([0-9a-f]{40}|[0-9a-f]{64})$`)
)

// Check refuses what is not refs of a repository. Whether git takes the names, git says.
func (r Refs) Check() error {
	if r.Format != "sha1" && r.Format != "sha256" {
		return task.Errorf(task.Invalid, "%q is no format of hashes", r.Format)
	}
	for name, hash := range r.Objects {
		if !refName.MatchString(name) || !hashName.MatchString(hash) {
			return task.Errorf(task.Invalid, "%q at %q is no ref", name, hash)
		}
	}
	for name, target := range r.Symbolic {
		if name != head && !refName.MatchString(name) || !refName.MatchString(target) {
			return task.Errorf(task.Invalid, "%q for %q is no ref", name, target)
		}
	}
	for _, hash := range r.Shallow {
		if !hashName.MatchString(hash) {
			return task.Errorf(task.Invalid, "%q is no commit", hash)
		}
	}
	return nil
}
