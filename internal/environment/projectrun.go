package environment

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

// ProjectSetup is a project as set-up left it.
type ProjectSetup struct {
	Project
	Session  string    `json:"session,omitempty"` // the shell session of its commands
	Ready    bool      `json:"ready"`
	Problem  string    `json:"problem,omitempty"` // why it is not ready
	Baseline *Baseline `json:"baseline,omitempty"`
}

// Command is a command of the project: it starts in its folder and in its session.
func (p ProjectSetup) Command(text string) sandbox.Command {
	return sandbox.Command{Text: text, Folder: p.Directory, Session: p.Session}
}

// needed are the projects to be set up, the main one first.
func (r *setupRun) needed(files fs.FS) []*ProjectSetup {
	main, found := r.detected.find(r.selected.Name, r.selected.Directory)
	if !found {
		main = r.Table.projectAt(files, r.selected.Directory, r.entry)
	}
	main.SetupCommands, main.Verification = r.selected.SetupCommands, r.selected.Verification
	others := r.request.Plan.Projects
	if others == nil {
		others = slices.DeleteFunc(slices.Clone(r.detected.Projects), func(p Project) bool {
			return r.detected.Guess || p.Directory == main.Directory && p.EnvironmentType == main.EnvironmentType
		})
	}
	needed := []*ProjectSetup{{Project: main}}
	var without []string
	for _, other := range others {
		if !r.imageHas(other.EnvironmentType) {
			without = append(without, other.name())
			continue
		}
		needed = append(needed, &ProjectSetup{Project: other, Session: sessionOf(main, other)})
	}
	if len(without) > 0 {
		r.remark(fmt.Sprintf("the image %s is for %s only, so these projects were not set up: %s", r.image(), r.entry.Name, strings.Join(without, ", ")))
	}
	return needed
}

// leftOut are the projects of the repository that have tests and are not set up, since they need
// another image than the selected one.
func (r *setupRun) leftOut() []Project {
	if r.detected.Guess {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(r.detected.Projects), func(p Project) bool {
		return p.TestCommand == "" || r.imageHas(p.EnvironmentType)
	})
}

// imageHas reports whether projects of the environment can be set up in the sandbox of
// the selected one: where sandboxes are made from images, its image has to be the same.
func (r *setupRun) imageHas(environment string) bool {
	if environment == r.entry.Name || !r.Engine.Capabilities().Images {
		return true
	}
	entry, known := r.Table.Find(environment)
	return known && r.request.Spec.Image == "" && entry.Image == r.entry.Image
}

// sessionOf is the shell session of a project's commands. The main project has the
// usual one, and what is managed together has one together.
func sessionOf(main, project Project) string {
	if main.sameWorkspace(project) {
		return ""
	}
	folder := project.Directory
	if project.Workspace != "" {
		folder = project.Workspace
	}
	sum := sha256.Sum256([]byte(folder + "\x00" + project.EnvironmentType))
	return "project-" + hex.EncodeToString(sum[:6])
}

// rootOf is the root of the workspace that the project is a member of, or nil.
func (r *setupRun) rootOf(p *ProjectSetup) *ProjectSetup {
	for _, root := range r.projects {
		if p.Member() && !root.Member() && root.sameWorkspace(p.Project) {
			return root
		}
	}
	return nil
}

// inOrder are the projects in the order in which they are set up: the main one first,
// unless it is a member of a workspace, which is set up with the root.
func (r *setupRun) inOrder() []*ProjectSetup {
	order := slices.Clone(r.projects)
	if root := r.rootOf(r.main()); root != nil {
		at := slices.Index(order, root)
		order = append([]*ProjectSetup{root}, slices.Delete(order, at, at+1)...)
	}
	return order
}

func (r *setupRun) main() *ProjectSetup { return r.projects[0] }

// setUpAll sets up all projects, keeps what that leaves, and verifies it. What verification
// runs is not in what is kept: plans that say the same in other words share it.
func (r *setupRun) setUpAll(ctx context.Context) error {
	done, err := r.each(ctx, r.inOrder(), r.setUpProject)
	if err != nil {
		return err
	}
	if len(done) == len(r.projects) && !r.keep(ctx) {
		r.result.Warnings = append(r.result.Warnings, "the sandbox was lost or had no room while its snapshot was made, and is set up once more")
		if err := r.startAnew(ctx); err != nil {
			return err
		}
		return r.setUpAll(ctx) // with less that is kept
	}
	done, err = r.each(ctx, done, r.verifyProject)
	for _, p := range done {
		p.Ready = true
	}
	if r.result.SetupResult.Regenerations > 0 || !r.allReady() {
		r.result.SetupResult.SnapshotKey, r.kept = "", "" // there is one, and this environment is another
	}
	return err
}

// each does something with projects and returns those for which it succeeded. That the main
// one fails is an error. That another one does is a warning, unless the sandbox is gone with it.
func (r *setupRun) each(ctx context.Context, projects []*ProjectSetup, do func(context.Context, *ProjectSetup) error) (done []*ProjectSetup, err error) {
	for _, p := range projects {
		if root := r.rootOf(p); root != nil && root.Problem != "" {
			err = fmt.Errorf("its workspace is not ready: %s", root.Problem)
		} else {
			err = do(ctx, p)
		}
		switch {
		case err == nil:
			done = append(done, p)
		case p == r.main() || ctx.Err() != nil || r.box == nil:
			return done, err
		default:
			p.Problem = firstOf(err.Error())
			r.remark(fmt.Sprintf("the project %s could not be set up: %s", p.name(), code(p.Problem)))
		}
	}
	return done, nil
}

// firstOf is the first line of an error, shortened.
func firstOf(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return textfmt.Shorten(line, longestShown)
}

// setUpProject sets up one project until that succeeds or nothing more can be done.
func (r *setupRun) setUpProject(ctx context.Context, p *ProjectSetup) error {
	entry, _ := r.Table.Find(p.EnvironmentType)
	for _, command := range entry.Prepare {
		if _, err := r.try(ctx, p, p.Directory, command); err != nil {
			return err
		}
	}
	return r.install(ctx, p)
}

// install runs the set-up commands of a project, and those that repair them.
func (r *setupRun) install(ctx context.Context, p *ProjectSetup) error {
	for {
		err := r.setUp(ctx, p, func(string, string) bool { return true })
		if err == nil || ctx.Err() != nil || r.lacksToolchain(p, err) {
			return err
		}
		if err := r.repair(ctx, p, err); err != nil {
			return err
		}
	}
}

// verifyProject verifies a project that was set up, and sets it up anew with what repairs it.
func (r *setupRun) verifyProject(ctx context.Context, p *ProjectSetup) error {
	for {
		err := r.verify(ctx, p)
		if err == nil || ctx.Err() != nil || r.lacksToolchain(p, err) {
			return err
		}
		if err := r.repair(ctx, p, err); err != nil {
			return err
		}
		if err := r.install(ctx, p); err != nil {
			return err
		}
	}
}

// exitNotFound is the exit code of a shell that does not find the program.
const exitNotFound = 127

// lacksToolchain reports whether a project of another environment than the selected one
// failed because its programs are not there: other commands would not help.
func (r *setupRun) lacksToolchain(p *ProjectSetup, err error) bool {
	failed, is := errors.AsType[*failureError](err)
	return is && p.EnvironmentType != r.main().EnvironmentType && failed.failure.ExitCode == exitNotFound
}

// verifyAll verifies what a snapshot has.
func (r *setupRun) verifyAll(ctx context.Context) error {
	for _, p := range r.inOrder() {
		if err := r.verify(ctx, p); err != nil {
			return err
		}
		p.Ready = true
	}
	return nil
}

// allReady reports whether no project was left out on the way.
func (r *setupRun) allReady() bool {
	return !slices.ContainsFunc(r.projects, func(p *ProjectSetup) bool { return !p.Ready })
}

// find is the project of an environment in a folder, or in the first folder that has
// one if none is named.
func (d Detection) find(environment, directory string) (Project, bool) {
	projects := d.Projects
	if len(projects) == 0 && d.EnvironmentType != "" {
		projects = []Project{{Directory: path.Clean(d.Directory), EnvironmentType: d.EnvironmentType, SetupCommands: d.SetupCommands,
			BuildCommand: d.BuildCommand, TestCommand: d.TestCommand, Verification: d.Verification}}
	}
	for _, p := range projects {
		if p.EnvironmentType == environment && (directory == "" || p.Directory == directory) {
			return p, true
		}
	}
	return Project{}, false
}

// baselineTime is how long the tests of all projects together may take before no
// further ones are run, in milliseconds.
const baselineTime = 20 * 60 * 1000

// runBaselines runs the tests of the projects that are ready. Members that the root of
// their workspace tests too are not tested once more.
func (r *setupRun) runBaselines(ctx context.Context) {
	plain := make([]Project, len(r.projects))
	for i, p := range r.projects {
		plain[i] = p.Project
	}
	needed := WithoutCovered(plain)
	spent := int64(0)
	for _, p := range r.projects {
		isNeeded := p == r.main() || slices.ContainsFunc(needed, func(one Project) bool {
			return one.Directory == p.Directory && one.EnvironmentType == p.EnvironmentType
		})
		if !p.Ready || p.TestCommand == "" || !isNeeded || ctx.Err() != nil {
			continue
		}
		if spent > baselineTime {
			r.result.Warnings = append(r.result.Warnings, fmt.Sprintf("the tests of %s were not run before the change: those of the others took too long", p.name()))
			continue
		}
		r.reportStep(Step{Kind: RunningBaseline, Command: p.TestCommand, Directory: p.Directory})
		command := p.Command(p.TestCommand)
		command.Timeout, command.OutputLimit = r.CommandTimeout, r.OutputLimit
		baseline, err := RunTests(ctx, r.box, command, nil)
		if err != nil {
			r.Log.WarnContext(ctx, "environment set-up: failed to run the tests", "project", p.name(), "error", err)
			return
		}
		spent += baseline.Milliseconds
		p.Baseline = &baseline
	}
}
