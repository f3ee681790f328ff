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
	"slices"
	"strings"

	"github.com/toryo-dev/toryo/internal/task"
)

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
		refs.Symbolic[head] = strings.TrimSuffix(target, "\n")
	}
	listed, err := p.Run(ctx, Command{Dir: dir, Args: append([]string{"for-each-ref", "--format=" + RefFormat}, places...)})
	if err != nil {
		return refs, err
	}
	for line := range strings.Lines(listed) {
		ref, err := ParseRef(line)
		if err != nil {
			return refs, err
		}
		if ref.Target != "" {
			refs.Symbolic[ref.Name] = ref.Target
		} else {
			refs.Objects[ref.Name] = ref.Hash
		}
	}
	return refs, refs.Check()
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
