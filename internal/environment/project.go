package environment

import (
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/toryo-dev/toryo/internal/textfmt"
)

// Project is one project of a repository: a folder with the manifests of one
// environment. Its commands start in its folder.
type Project struct {
	Directory       string `json:"directory"` // "." for the top
	EnvironmentType string `json:"environment_type"`
	// Workspace is the folder of the workspace that the project is a member of, or the
	// root of: then it is the project's own. Members are set up with the root, so they
	// have no set-up commands.
	Workspace     string   `json:"workspace,omitempty"`
	SetupCommands []string `json:"setup_commands"`
	BuildCommand  string   `json:"build_command"` // empty if nothing tells
	TestCommand   string   `json:"test_command"`  // the same
	// TestsMembers says that the test command of a workspace's root tests the members too.
	TestsMembers  bool     `json:"tests_members,omitempty"`
	Verification  []Check  `json:"verification"`
	DetectedFiles []string `json:"detected_files"`
}

// mostProjects bounds how many projects of a repository are listed.
const mostProjects = 20

// Member reports whether the project is set up with the root of its workspace.
func (p Project) Member() bool { return p.Workspace != "" && p.Workspace != p.Directory }

// sameWorkspace reports whether both are managed together.
func (p Project) sameWorkspace(other Project) bool {
	return p.Workspace != "" && p.Workspace == other.Workspace && p.EnvironmentType == other.EnvironmentType
}

// name is the project for people.
func (p Project) name() string {
	if p.Directory == "." {
		return p.EnvironmentType + " at the top"
	}
	return p.EnvironmentType + " in " + code(p.Directory)
}

// code is a text of somebody else's in a sentence for people: one line that no markup
// can break out of.
func code(text string) string {
	return "`" + strings.ReplaceAll(textfmt.OneLine(text), "`", "'") + "`"
}

// holds reports whether the file or folder lies in the folder.
func holds(folder, name string) bool {
	return folder == "." || name == folder || strings.HasPrefix(name, folder+"/")
}

// Holds reports whether the file lies in the project.
func (p Project) Holds(file string) bool { return holds(p.Directory, path.Clean(file)) }

// Touched are the projects whose tests a change of the files touches, in the order of
// the projects. A file belongs to the deepest projects above it. One that lies directly
// in the root of a workspace, as its lock file does, touches all of the workspace. One
// that lies in no project touches all projects: several may use it.
func Touched(projects []Project, changedFiles []string) []Project {
	touched := make([]bool, len(projects))
	for _, file := range changedFiles {
		file = path.Clean(file)
		deepest := ""
		for _, project := range projects {
			if holds(project.Directory, file) && (deepest == "" || holds(deepest, project.Directory)) {
				deepest = project.Directory
			}
		}
		for i, project := range projects {
			switch {
			case deepest == "", project.Directory == deepest:
				touched[i] = true
			case path.Dir(file) == deepest && project.Workspace == deepest:
				touched[i] = touched[i] || slices.ContainsFunc(projects, func(root Project) bool { return root.Directory == deepest && root.sameWorkspace(project) })
			}
		}
	}
	var found []Project
	for i, project := range projects {
		if touched[i] {
			found = append(found, project)
		}
	}
	return found
}

// WithoutCovered leaves out the members of a workspace whose root is there and tests
// them too.
func WithoutCovered(projects []Project) []Project {
	return slices.DeleteFunc(slices.Clone(projects), func(p Project) bool {
		return p.Member() && slices.ContainsFunc(projects, func(root Project) bool {
			return !root.Member() && root.TestsMembers && root.TestCommand != "" && root.sameWorkspace(p)
		})
	})
}

// place is a candidate that is a project, with the root of its workspace if it is a
// member.
type place struct {
	Candidate
	root *place
}

// projects finds the projects of a repository. The main one comes first.
func (t *Table) projects(project fs.FS, folders []folder, main Candidate) ([]Project, []string) {
	var (
		places   []*place
		warnings []string
		build    = t.buildFiles()
		seen     = map[string]bool{}
	)
	look := func(in folder) {
		if seen[in.path] || !build.in(in) {
			return
		}
		seen[in.path] = true
		found, unread := t.candidates(project, in)
		warnings = append(warnings, unread...)
		places = append(places, t.placesOf(found, places, main)...)
	}
	slices.SortStableFunc(folders, func(a, b folder) int { return cmp.Or(a.depth()-b.depth(), strings.Compare(a.path, b.path)) })
	for _, in := range folders {
		look(in)
	}
	for i := 0; i < len(places) && len(places) <= mostProjects; i++ { // it grows by members of members
		for _, name := range places[i].parsed.members.named() {
			if in, err := list(project, path.Join(places[i].in.path, name)); err == nil {
				look(in)
			}
		}
	}
	at := slices.IndexFunc(places, func(p *place) bool { return p.is(main) })
	if at < 0 {
		at, places = len(places), append(places, &place{Candidate: main})
	}
	first := places[at]
	places = append([]*place{first}, slices.Delete(places, at, at+1)...)
	if len(places) > mostProjects {
		warnings = append(warnings, fmt.Sprintf("the repository has more than %d projects; %s and what comes after it are left out", mostProjects, path.Join(places[mostProjects].in.path)))
		places = places[:mostProjects]
	}
	made := make([]Project, len(places))
	for i, p := range places {
		made[i] = t.project(p)
	}
	return made, warnings
}

func (p *place) is(candidate Candidate) bool {
	return p.in.path == candidate.in.path && p.Environment == candidate.Environment
}

// placesOf are those candidates of one folder that are projects.
func (t *Table) placesOf(found []Candidate, above []*place, main Candidate) []*place {
	var places []*place
	for _, candidate := range found {
		if !candidate.built() {
			continue
		}
		here := &place{Candidate: candidate, root: rootOf(candidate, above)}
		if here.root != nil || here.is(main) || t.standsAlone(candidate, found, above) {
			places = append(places, here)
		}
	}
	return places
}

// rootOf is the root of the workspace that declares the candidate as a member.
func rootOf(candidate Candidate, above []*place) *place {
	for _, root := range slices.Backward(above) {
		if root.Environment != candidate.Environment || root.in.path == candidate.in.path || !holds(root.in.path, candidate.in.path) {
			continue
		}
		within := candidate.in.path
		if root.in.path != "." {
			within = strings.TrimPrefix(within, root.in.path+"/")
		}
		if root.parsed.members.has(within) {
			if root.root != nil { // a member with members of its own
				return root.root
			}
			return root
		}
	}
	return nil
}

// standsAlone reports whether a candidate that nothing declares is a project of its
// own, among the others of its folder and below those above it.
func (t *Table) standsAlone(candidate Candidate, found []Candidate, above []*place) bool {
	entry, _ := t.Find(candidate.Environment)
	below := func(p *place) bool { return p.in.path != candidate.in.path && holds(p.in.path, candidate.in.path) }
	others := slices.DeleteFunc(slices.Clone(found), func(c Candidate) bool { return c.Environment == candidate.Environment || !c.solid() })
	switch {
	case !candidate.solid() || candidate.in.isAside() || candidate.in.isSample():
		return false
	case entry.Name == "c": // what is written in C is often a part of something else
		return len(others) == 0 && !slices.ContainsFunc(above, below)
	case entry.Name == "python" && slices.ContainsFunc(others, Candidate.conda):
		return false
	case candidate.helper(found) && candidate.parsed.parts["script"] == "":
		return false
	}
	return entry.Apart || !slices.ContainsFunc(above, func(p *place) bool { return p.Environment == entry.Name && below(p) })
}

// project describes what is at a place.
func (t *Table) project(p *place) Project {
	entry, _ := t.Find(p.Environment)
	manager := entry.managerOf(p.Candidate)
	made := Project{Directory: p.in.path, EnvironmentType: entry.Name, SetupCommands: []string{}, Verification: []Check{}, DetectedFiles: []string{}}
	for _, file := range p.files {
		if !strings.HasSuffix(file, "/") {
			made.DetectedFiles = append(made.DetectedFiles, path.Join(p.in.path, file))
		}
	}
	if p.root != nil {
		manager = entry.managerOf(p.root.Candidate)
	}
	made.TestCommand, made.TestsMembers = manager.test(p.Candidate)
	made.BuildCommand = entry.compile(p.Candidate)
	if p.root == nil {
		made.SetupCommands, made.Verification = manager.commands(p.Candidate), entry.Verify
		if len(p.parsed.members.declared) > 0 {
			made.Workspace = made.Directory
		}
		made.TestsMembers = made.TestsMembers && made.Workspace != ""
		return made
	}
	made.Workspace, made.TestsMembers = p.root.in.path, false
	if manager.Member.Test != "" {
		made.TestCommand, made.BuildCommand = p.memberText(manager.Member.Test), p.memberText(manager.Member.Compile)
	}
	return made
}

// memberText is a command for one member of a workspace.
func (p *place) memberText(command string) string {
	within := p.in.path
	if p.root.in.path != "." {
		within = strings.TrimPrefix(within, p.root.in.path+"/")
	}
	up := strings.TrimSuffix(strings.Repeat("../", strings.Count(within, "/")+1), "/")
	return strings.NewReplacer("{up}", up, "{path}", quote(within), "{module}", quote(":"+strings.ReplaceAll(within, "/", ":"))).Replace(command)
}

// projectAt is the project of an environment in a folder, whatever lies there. Without
// anything of the environment in the folder, its tests and build are not known.
func (t *Table) projectAt(project fs.FS, directory string, entry Environment) Project {
	in, err := list(project, directory)
	if err != nil {
		in = folder{path: directory}
	}
	candidate := entry.candidate(in, 0)
	candidate.parsed.read(project, in, candidate.files)
	if entry.Name == "python" {
		candidate.parsed.lookForPytest(in)
	}
	made := t.project(&place{Candidate: candidate})
	if candidate.markers == 0 && candidate.sources == 0 {
		made.TestCommand, made.BuildCommand = "", ""
	}
	return made
}

// managerOf is the package manager of what was found: the one that the manifests name,
// or else the one whose files are there.
func (e Environment) managerOf(found Candidate) Manager {
	manager := e.manager(found.in.files)
	if named := found.parsed.manager; named != "" && named != manager.Name {
		manager = e.managerNamed(named, manager)
		manager.Name = named
	}
	return manager
}

// fileNames are names of files: most of them are compared at once, whatever their number.
type fileNames struct {
	exact    map[string]bool
	patterns []string
}

// add adds names and patterns.
func (n fileNames) add(names []string) fileNames {
	for _, name := range names {
		switch {
		case !strings.ContainsAny(name, "*?["):
			n.exact[name] = true
		case !slices.Contains(n.patterns, name):
			n.patterns = append(n.patterns, name)
		}
	}
	return n
}

// match reports whether one of them names the file.
func (n fileNames) match(file string) bool {
	return n.exact[file] || slices.ContainsFunc(n.patterns, func(pattern string) bool { return matchesName(pattern, file) })
}

// buildFiles are the names of files that build an environment.
func (t *Table) buildFiles() fileNames {
	names := fileNames{exact: map[string]bool{}}
	for _, entry := range t.entries {
		names = names.add(entry.Build)
	}
	return names
}

// in reports whether the folder has a file with one of the names.
func (n fileNames) in(at folder) bool { return slices.ContainsFunc(at.files, n.match) }
