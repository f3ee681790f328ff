package environment

import (
	_ "embed"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/toryo-dev/toryo/internal/task"
)

//go:embed environments.yaml
var builtIn []byte

// Environment is one entry of the table: everything that is known of one kind of
// project. environments.yaml says what each field is for.
type Environment struct {
	Name      string            `yaml:"name"`
	Title     string            `yaml:"title"`
	Image     string            `yaml:"image"`
	Languages []string          `yaml:"languages"`
	Markers   []string          `yaml:"markers"`
	Build     []string          `yaml:"build"`
	Leading   []string          `yaml:"leading"`
	Sources   []string          `yaml:"sources"`
	Apart     bool              `yaml:"apart"`
	Env       map[string]string `yaml:"env"`
	Managers  []Manager         `yaml:"managers"`
	Prepare   []string          `yaml:"prepare"`
	Compile   []Command         `yaml:"compile"`
	Caches    []string          `yaml:"caches"`
	Toolchain Toolchain         `yaml:"toolchain"`
	Verify    []Check           `yaml:"verify"`
}

// Manager is a package manager of an environment.
type Manager struct {
	Name  string    `yaml:"name"`
	When  []string  `yaml:"when"`
	Setup []Command `yaml:"setup"`
	Tests []Command `yaml:"tests"`
	Test  string    `yaml:"test"`
	All   bool      `yaml:"all"`
	// Member is how one member of a workspace is tested and built, if not by the same
	// commands in its folder.
	Member struct {
		Test    string `yaml:"test"`
		Compile string `yaml:"compile"`
	} `yaml:"member"`
}

// Command is a command and what it is for: If names files or facts of which one
// must be there, and First files of which the first that is there is put in.
type Command struct {
	Run   string   `yaml:"run"`
	If    []string `yaml:"if"`
	First []string `yaml:"first"`
	All   bool     `yaml:"all"`
}

// Check is a verification: the command has to end with 0 and to print exactly
// the expected output.
type Check struct {
	Command        string `json:"command" yaml:"command"`
	ExpectedOutput string `json:"expected_output" yaml:"expected_output"`
}

// Table holds the environments, in the order that decides between equals.
type Table struct {
	entries  []Environment
	fallback string // name of the default; the first entry when empty
}

// BuiltIn is the table that comes with the program.
func BuiltIn() *Table {
	table := &Table{}
	if err := table.read(builtIn); err != nil {
		panic(err) // the embedded file is broken, which a test would show
	}
	return table
}

// With returns the table with the entries of a configuration file added. An entry
// with a known name changes the fields that it names; another is appended.
func (t *Table) With(configuration []byte) (*Table, error) {
	extended := &Table{entries: slices.Clone(t.entries), fallback: t.fallback}
	if err := extended.read(configuration); err != nil {
		return nil, task.Wrap(task.BadConfig, err, "the environments in the configuration cannot be read")
	}
	return extended, nil
}

// WithImages returns the table with other container images, by the name of the
// environment. A name that is not known is added: it is for plans to select, as
// nothing is known by which a project could be told to need it.
func (t *Table) WithImages(images map[string]string) *Table {
	changed := &Table{entries: slices.Clone(t.entries), fallback: t.fallback}
	for _, name := range slices.Sorted(maps.Keys(images)) {
		known := slices.IndexFunc(changed.entries, func(e Environment) bool { return e.Name == name })
		if known < 0 {
			changed.entries = append(changed.entries, Environment{Name: name, Title: name, Image: images[name]})
			continue
		}
		changed.entries[known].Image = images[name]
	}
	return changed
}

// WithDefault returns the table with another default. NotFound means that there
// is no environment of that name.
func (t *Table) WithDefault(name string) (*Table, error) {
	if _, known := t.Find(name); !known {
		return nil, task.Errorf(task.NotFound, "there is no environment %q", name).
			WithHint("use one of %s", strings.Join(t.Names(), ", "))
	}
	return &Table{entries: t.entries, fallback: name}, nil
}

// Only returns the table with the named environments alone, in its own order, or all
// if none is named. NotFound means that there is none of a name.
func (t *Table) Only(names []string) (*Table, error) {
	for _, name := range names {
		if _, known := t.Find(name); !known {
			return nil, task.Errorf(task.NotFound, "there is no environment %q", name).
				WithHint("use some of %s", strings.Join(t.Names(), ", "))
		}
	}
	kept := slices.DeleteFunc(slices.Clone(t.entries), func(e Environment) bool { return len(names) > 0 && !slices.Contains(names, e.Name) })
	return &Table{entries: kept, fallback: t.fallback}, nil
}

func (t *Table) read(text []byte) error {
	var entries []Environment
	if err := yaml.Unmarshal(text, &entries); err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.Name == "" {
			return fmt.Errorf("an environment has no name")
		}
		if known := slices.IndexFunc(t.entries, func(e Environment) bool { return e.Name == entry.Name }); known >= 0 {
			t.entries[known] = merged(t.entries[known], entry)
			continue
		}
		t.entries = append(t.entries, entry)
	}
	return nil
}

func merged(base, change Environment) Environment {
	set := func(to *[]string, from []string) {
		if from != nil {
			*to = from
		}
	}
	set(&base.Languages, change.Languages)
	set(&base.Markers, change.Markers)
	set(&base.Build, change.Build)
	set(&base.Leading, change.Leading)
	set(&base.Sources, change.Sources)
	base.Apart = base.Apart || change.Apart
	set(&base.Prepare, change.Prepare)
	set(&base.Caches, change.Caches)
	if change.Toolchain.Run != nil {
		base.Toolchain = change.Toolchain
	}
	if change.Compile != nil {
		base.Compile = change.Compile
	}
	if change.Title != "" {
		base.Title = change.Title
	}
	if change.Image != "" {
		base.Image = change.Image
	}
	if change.Env != nil {
		base.Env = change.Env
	}
	if change.Managers != nil {
		base.Managers = change.Managers
	}
	if change.Verify != nil {
		base.Verify = change.Verify
	}
	return base
}

// Names lists the environments in order.
func (t *Table) Names() []string {
	names := make([]string, len(t.entries))
	for i, entry := range t.entries {
		names[i] = entry.Name
	}
	return names
}

// All returns the entries in order.
func (t *Table) All() []Environment { return slices.Clone(t.entries) }

// Default is the environment for projects that tell nothing.
func (t *Table) Default() Environment {
	if chosen, known := t.Find(t.fallback); known {
		return chosen
	}
	return t.entries[0]
}

// Find returns the environment of that name.
func (t *Table) Find(name string) (Environment, bool) {
	for _, entry := range t.entries {
		if entry.Name == name {
			return entry, true
		}
	}
	return Environment{}, false
}

// forLanguage returns the name of the environment for a programming language, or
// nothing.
func (t *Table) forLanguage(language string) string {
	language = strings.ToLower(strings.TrimSpace(language))
	for _, entry := range t.entries {
		if entry.Name == language || slices.Contains(entry.Languages, language) {
			return entry.Name
		}
	}
	return ""
}

// manager chooses the package manager for a folder with these files.
func (e Environment) manager(files []string) Manager {
	var fallback Manager
	for _, manager := range e.Managers {
		if len(manager.When) == 0 {
			if fallback.Name == "" {
				fallback = manager
			}
			continue
		}
		if anyMatches(manager.When, files) {
			return manager
		}
	}
	return fallback
}

// commands are the set-up commands for what was found.
func (m Manager) commands(found Candidate) []string {
	commands := []string{}
	for _, command := range m.Setup {
		if run, applies := command.text(found); applies {
			commands = append(commands, run)
		}
	}
	return commands
}

// test is how the tests are run of what was found: what the manifests say, or
// else the first way for which there is a sign. Empty means that nothing tells. All
// says that it tests the members of a workspace too.
func (m Manager) test(found Candidate) (command string, all bool) {
	if found.parsed.test != "" {
		return found.parsed.test, false
	}
	for _, way := range m.Tests {
		if run, applies := way.text(found); applies {
			return run, way.All
		}
	}
	return m.Test, m.All
}

// compile is how what was found is built. Empty means that nothing tells.
func (e Environment) compile(found Candidate) string {
	for _, way := range e.Compile {
		if run, applies := way.text(found); applies {
			return run
		}
	}
	return ""
}

// text is the command with everything put in, and whether it applies.
func (c Command) text(found Candidate) (string, bool) {
	if len(c.If) > 0 && !slices.ContainsFunc(c.If, found.has) {
		return "", false
	}
	run := c.Run
	if len(c.First) > 0 {
		at := slices.IndexFunc(c.First, found.has)
		if at < 0 {
			return "", false
		}
		run = strings.ReplaceAll(run, "{file}", c.First[at])
	}
	for name, value := range found.parsed.parts {
		run = strings.ReplaceAll(run, "{"+name+"}", value)
	}
	return run, true
}

func anyMatches(patterns, files []string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		return slices.ContainsFunc(files, func(file string) bool { return matchesName(pattern, file) })
	})
}

// matchesName reports whether a file is what the pattern names. A pattern that
// ends in a slash names a folder.
func matchesName(pattern, file string) bool {
	if !strings.ContainsAny(pattern, "*?[") {
		return pattern == file
	}
	matched, err := path.Match(pattern, file)
	return err == nil && matched
}
