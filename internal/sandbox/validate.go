package sandbox

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/toryo-dev/toryo/internal/lazyregexp"
	"github.com/toryo-dev/toryo/internal/task"
)

var (
	labelForm    = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._:/#!@-]{0,199}$`)
	snapshotForm = lazyregexp.New(`^[a-z0-9][a-z0-9-]{7,99}$`)
	sessionForm  = lazyregexp.New(`^[a-z0-9][a-z0-9-]{0,63}$`)
	variableForm = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// Validate says what is wrong with the specification, if anything, and returns
// it with the workspace as an absolute path and the limits filled in.
func (s Spec) Validate() (Spec, error) {
	if !labelForm.MatchString(s.Owner) {
		return s, task.Errorf(task.Invalid, "the sandbox's owner %q is not a valid label", s.Owner)
	}
	if s.Task != "" && !labelForm.MatchString(s.Task) {
		return s, task.Errorf(task.Invalid, "the sandbox's task %q is not a valid label", s.Task)
	}
	if s.Network == "" {
		s.Network = NoNetwork
	}
	if !s.Network.Valid() {
		return s, task.Errorf(task.Invalid, "unknown network policy %q; it is none, registries or open", string(s.Network))
	}
	if s.Snapshot != "" {
		if err := ValidateKey(s.Snapshot); err != nil {
			return s, err
		}
	}
	for name, value := range s.Env {
		if !variableForm.MatchString(name) || strings.ContainsRune(value, 0) {
			return s, task.Errorf(task.Invalid, "the environment variable %q of the sandbox is not valid", name)
		}
	}
	s.Limits = s.Limits.OrDefaults()
	if s.Progress == nil {
		s.Progress = func(string) {}
	}
	return s.withWorkspace()
}

// withWorkspace checks the workspace and makes its path absolute.
func (s Spec) withWorkspace() (Spec, error) {
	workspace, err := filepath.Abs(s.Workspace)
	if err != nil || s.Workspace == "" {
		return s, task.Errorf(task.Invalid, "the sandbox has no workspace")
	}
	info, err := os.Stat(workspace)
	if err != nil {
		return s, task.Wrap(task.NotFound, err, "the sandbox's workspace cannot be used")
	}
	if !info.IsDir() {
		return s, task.Errorf(task.Invalid, "the sandbox's workspace %s is not a folder", workspace)
	}
	s.Workspace = workspace
	return s, nil
}

// ValidateKey says what is wrong with a snapshot's key, if anything. Keys are
// names of folders and images, so nothing else may be in them.
func ValidateKey(key string) error {
	if !snapshotForm.MatchString(key) {
		return task.Errorf(task.Invalid, "the snapshot key %q is not 8 to 100 lower-case letters, digits and hyphens", key)
	}
	return nil
}

// Validate says what is wrong with the command, if anything, and fills in what
// is zero.
func (c Command) Validate() (Command, error) {
	if len(c.Text) > LongestCommand {
		return c, task.Errorf(task.TooLarge, "the command has %d bytes; %d are allowed", len(c.Text), LongestCommand)
	}
	if strings.ContainsRune(c.Text, 0) {
		return c, task.Errorf(task.Invalid, "the command has a zero byte in it")
	}
	if c.Folder != "" && (!filepath.IsLocal(c.Folder) || strings.ContainsRune(c.Folder, 0)) {
		return c, task.Errorf(task.Invalid, "%q is not a folder of the workspace", c.Folder)
	}
	if c.Session != "" && !sessionForm.MatchString(c.Session) {
		return c, task.Errorf(task.Invalid, "%q is not a name for a session: small letters, digits and hyphens", c.Session)
	}
	if c.Timeout <= 0 {
		c.Timeout = DefaultTimeout
	}
	if c.OutputLimit <= 0 {
		c.OutputLimit = DefaultOutput
	}
	return c, nil
}
