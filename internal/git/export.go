package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

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

// Export writes a pack with everything that the refs of a bare repository lead to whose names
// begin in one of the given ways, and returns these refs, as they were at one moment. Others may
// write to the repository meanwhile, as long as they remove no objects. Without such refs nothing
// is written.
func (p *Program) Export(ctx context.Context, dir string, places []string, pack io.Writer) (Refs, error) {
	refs, err := p.refs(ctx, dir, places)
	if err != nil || len(refs.Objects) == 0 {
		return refs, err
	}
	_, err = p.Run(ctx, Command{
		Dir: dir, Input: strings.NewReader(refs.tips()), Output: pack,
		Args: []string{"pack-objects", "--revs", "--stdout", "--quiet", "--delta-base-offset", "--threads=1"},
	})
	return refs, err
}

// tips are the hashes of all refs, one to a line.
func (r Refs) tips() string {
	tips := slices.Compact(slices.Sorted(maps.Values(r.Objects)))
	return strings.Join(tips, "\n") + "\n"
}

func (p *Program) refs(ctx context.Context, dir string, places []string) (Refs, error) {
	refs := Refs{Objects: map[string]string{}, Symbolic: map[string]string{}}
	format, err := p.Run(ctx, Command{Dir: dir, Args: []string{"rev-parse", "--show-object-format"}})
	if err != nil {
		return refs, err
	}
	refs.Format = strings.TrimSpace(format)
	// A repository that is not shallow has no such file.
	shallow, err := os.ReadFile(filepath.Join(dir, "shallow"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return refs, err
	}
	refs.Shallow = strings.Fields(string(shallow))
	if target, err := p.Run(ctx, Command{Dir: dir, Args: []string{"symbolic-ref", "--quiet", head}}); err == nil { // else it is none
		refs.Symbolic[head] = strings.TrimSpace(target)
	}
	listed, err := p.Run(ctx, Command{Dir: dir, Args: append([]string{"for-each-ref", "--format=%(objectname) %(refname) %(symref)"}, places...)})
	if err != nil {
		return refs, err
	}
	for line := range strings.Lines(listed) {
		switch fields := strings.Fields(line); len(fields) {
		case 3:
			refs.Symbolic[fields[1]] = fields[2]
		case 2:
			refs.Objects[fields[1]] = fields[0]
		}
	}
	return refs, nil
}

// Init makes an empty bare repository.
func (p *Program) Init(ctx context.Context, dir, format string) error {
	_, err := p.Run(ctx, Command{Args: []string{"init", "--quiet", "--bare", "--template=", "--initial-branch=main", "--object-format=" + format, dir}})
	return err
}

// Import puts what Export wrote into an empty bare repository. It fails with Invalid if the refs
// are none, or lead to something that is not there.
func (p *Program) Import(ctx context.Context, dir string, refs Refs, pack io.Reader) error {
	if err := refs.Check(); err != nil {
		return err
	}
	if len(refs.Objects) > 0 {
		if err := p.importObjects(ctx, dir, refs, pack); err != nil {
			return err
		}
	}
	for name, target := range refs.Symbolic {
		if _, err := p.Run(ctx, Command{Dir: dir, Args: []string{"symbolic-ref", name, target}}); err != nil {
			return err
		}
	}
	return nil
}

func (p *Program) importObjects(ctx context.Context, dir string, refs Refs, pack io.Reader) error {
	if _, err := p.Run(ctx, Command{Dir: dir, Args: []string{"index-pack", "--stdin"}, Input: pack}); err != nil {
		return task.Wrap(task.Invalid, err, "the pack cannot be read")
	}
	if len(refs.Shallow) > 0 {
		if err := os.WriteFile(filepath.Join(dir, "shallow"), []byte(strings.Join(refs.Shallow, "\n")+"\n"), 0o600); err != nil {
			return err
		}
	}
	reach := Command{Dir: dir, Input: strings.NewReader(refs.tips()), Args: []string{"rev-list", "--objects", "--stdin", "--quiet"}}
	if _, err := p.Run(ctx, reach); err != nil {
		return task.Wrap(task.Invalid, err, "something that the refs lead to is missing")
	}
	var made strings.Builder
	for _, name := range slices.Sorted(maps.Keys(refs.Objects)) {
		fmt.Fprintf(&made, "create %s %s\n", name, refs.Objects[name])
	}
	_, err := p.Run(ctx, Command{Dir: dir, Args: []string{"update-ref", "--stdin"}, Input: strings.NewReader(made.String())})
	return err
}

var (
	refName  = regexp.MustCompile(`^refs/[^\x00-\x20\x7f]+$`)
	hashName = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)
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
