package source

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/toryo-dev/toryo/internal/task"
)

// withoutText makes the differences of some files binary and returns what puts that back. A patch
// is written as JSON, which has no other text than UTF-8: of a file in Shift_JIS or Latin-1 the
// bytes would be lost.
func (r *Repository) withoutText(ctx context.Context, from, to string) (back func() error, err error) {
	changes, err := r.Changes(ctx, from, to)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, change := range changes {
		for _, commit := range []string{from, to} {
			content, err := r.File(ctx, commit, change.Name)
			if code := task.CodeOf(err); err != nil && code != task.NotFound && code != task.TooLarge {
				return nil, err
			}
			if !utf8.Valid(content) || task.CodeOf(err) == task.TooLarge {
				names = append(names, change.Name)
				break
			}
		}
	}
	file := filepath.Join(r.Dir, "info", "attributes")
	write := func(text string) error {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return task.Wrap(task.DataDir, err, "the attributes of files cannot be written")
		}
		return nil
	}
	return func() error { return write(plain) }, write(plain + NoText(names))
}

// NoText are lines of git's attributes by which differences of files are binary.
func NoText(names []string) string {
	asPattern := strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`)
	asString := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)
	var lines strings.Builder
	for _, name := range names {
		lines.WriteString(`"/` + asString.Replace(asPattern.Replace(name)) + "\" -diff\n")
	}
	return lines.String()
}
