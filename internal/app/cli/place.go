package cli

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/task"
)

// named reports whether somebody has said where the installation is to be: by a flag, a
// variable or the configuration, or by calling the command in the folder of the
// configuration. The default alone is a folder below whichever one the command is called in.
func (s *Settings) named(c config.Config) bool {
	file := s.report.File()
	here := file != "" && filepath.Dir(absolute(file)) == absolute(".")
	return c.Database.Driver == "postgres" || !s.report.Origin("data_dir").IsDefault() || here || config.IsMachineFile(file)
}

// CheckNamed fails if nobody has said where an installation is to be made.
func (s *Settings) CheckNamed(c config.Config) error {
	if s.named(c) {
		return nil
	}
	return task.Errorf(task.DataDir, "the location of the installation is not set: %s", s.looked(c)).
		WithHint("name its folder with --data, or its configuration with --config")
}

// missing is the error of a command that needs an installation where there is none.
func (s *Settings) missing(c config.Config, mayMake bool) error {
	file := filepath.Join(absolute(c.DataDir), databaseFile)
	what := "there is no database " + file
	if c.Database.Driver == "postgres" {
		what = "the PostgreSQL database of the configuration is there, but nothing is in it"
	} else if _, err := os.Stat(file); err == nil {
		what = "the database " + file + " is there, but nothing is in it"
	}
	hint := "name the data directory with --data, or the configuration with --config"
	if s.remote {
		hint += ", or the server with --server"
	}
	if mayMake {
		hint += "; toryo up and toryo serve make a database, and so does this command in a folder that is named"
	}
	return task.Errorf(task.DataDir, "%s (%s)", what, s.looked(c)).WithHint("%s", hint)
}

// looked says where the installation was looked for, and why there.
func (s *Settings) looked(c config.Config) string {
	if c.Database.Driver == "postgres" {
		return s.lookedFor()
	}
	origin := s.report.Origin("data_dir")
	why := "set by " + origin.String()
	switch {
	case origin.IsDefault():
		why = "the " + origin.String()
	case origin.IsFlag():
		why = "given by --data"
	}
	return fmt.Sprintf("data directory: %s, %s; %s", absolute(c.DataDir), why, s.lookedFor())
}

// lookedFor says which configuration was read, and why that one.
func (s *Settings) lookedFor() string {
	file := s.report.File()
	switch {
	case file == "" && s.orElse() == "":
		return fmt.Sprintf("configuration: none, there is no %s here", DefaultFile)
	case file == "":
		return fmt.Sprintf("configuration: none, there is neither %s here nor %s", DefaultFile, config.Machine.File)
	case s.file != "":
		return fmt.Sprintf("configuration: %s, given by --config", absolute(file))
	case file == config.Machine.File:
		return "configuration: " + file + ", that of this machine"
	}
	return fmt.Sprintf("configuration: %s, in this folder", absolute(file))
}

// absolute is a path as it can be found from anywhere.
func absolute(path string) string {
	whole, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	return whole
}
