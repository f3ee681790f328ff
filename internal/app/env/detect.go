package env

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/toryo-dev/toryo/internal/environment"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/workdir"
)

// Detect says what environment a folder needs.
type Detect struct {
	Stdout   io.Writer
	Table    *environment.Table
	Dir      string
	Language string
	JSON     bool
}

// Run prints what the folder needs.
func (d Detect) Run() error {
	found, err := detect(d.Table, d.Dir, d.Language)
	if err != nil {
		return err
	}
	if d.JSON {
		return printJSON(d.Stdout, found)
	}
	var lines strings.Builder
	guess := ""
	if found.Guess {
		guess = "a guess: "
	}
	fmt.Fprintf(&lines, "environment: %s (%s%s)\n", found.EnvironmentType, guess, found.Reason)
	folder := found.Directory
	if folder == "." {
		folder = ""
	}
	for _, line := range []struct{ name, value string }{
		{"folder", folder}, {"package manager", found.PackageManager}, {"version", found.LanguageVersion},
	} {
		if line.value != "" {
			fmt.Fprintf(&lines, "%s: %s\n", line.name, line.value)
		}
	}
	for _, command := range found.SetupCommands {
		fmt.Fprintf(&lines, "set up: %s\n", command)
	}
	if found.TestCommand != "" {
		fmt.Fprintf(&lines, "test: %s\n", found.TestCommand)
	}
	for _, project := range found.Projects[1:] {
		fmt.Fprintf(&lines, "another project: %s in %s", project.EnvironmentType, project.Directory)
		if project.TestCommand != "" {
			fmt.Fprintf(&lines, ", test: %s", project.TestCommand)
		}
		lines.WriteString("\n")
	}
	for _, warning := range found.Warnings {
		fmt.Fprintf(&lines, "warning: %s\n", warning)
	}
	_, err = io.WriteString(d.Stdout, lines.String())
	return err
}

func detect(table *environment.Table, dir, language string) (environment.Detection, error) {
	files, err := workdir.Open(dir)
	if err != nil {
		return environment.Detection{}, task.Wrap(task.NotFound, err, "the folder cannot be opened")
	}
	defer func() { _ = files.Close() }()
	return table.Detect(files.FS(), language)
}

func printJSON(to io.Writer, value any) error {
	encoder := json.NewEncoder(to)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}
