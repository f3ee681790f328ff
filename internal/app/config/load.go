package config

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/toryo-dev/toryo/internal/redact"
)

// Load reads the configuration: the file, the variables of environ (as
// [os.Environ] gives them) over it, and overrides over both, which hold the
// values of flags by key ("server.addr"). Without a file ("") only the others
// count. A variable that is set to nothing counts as not set. A credential that is
// then missing is taken from the variables of other programs, see wellknown.go.
//
// The report holds every problem in one run. With problems the configuration is
// what could be understood, good for listing and not for work.
func Load(file string, environ []string, overrides map[string]string) (Config, Report) {
	l := newLoader(file)
	if file != "" {
		l.readFile()
	}
	return l.readOthers(environ, overrides)
}

// LoadText is [Load] for a file that is not written yet.
func LoadText(file string, data []byte, environ []string, overrides map[string]string) (Config, Report) {
	l := newLoader(file)
	l.readDocument(data)
	return l.readOthers(environ, overrides)
}

// LoadPlanned is [LoadText] before the files with its secrets are written. Planned has these by
// the full paths of their files.
func LoadPlanned(file string, data []byte, planned map[string]redact.Secret, environ []string, overrides map[string]string) (Config, Report) {
	l := newLoader(file)
	l.planned = planned
	l.readDocument(data)
	return l.readOthers(environ, overrides)
}

// readOthers reads what goes over the file.
func (l *loader) readOthers(environ []string, overrides map[string]string) (Config, Report) {
	l.readEnvironment(environ)
	l.readOverrides(overrides)
	l.readPassed(environ)
	l.readCloudVariables(environ)
	return l.finish(environ)
}

// loader collects the configuration and what is wrong with it.
type loader struct {
	schema   *schema
	file     string
	config   Config
	report   Report
	bad      map[string]bool     // keys whose value was refused
	unread   bool                // the file as a whole could not be understood
	sections map[string]position // where sections begin in the file
	redactor *redact.Redactor    // knows also the secrets that were refused
	planned  map[string]redact.Secret
}

func newLoader(file string) *loader {
	return &loader{
		schema:   keys(),
		file:     file,
		config:   Default(),
		report:   Report{file: file, origins: make(map[string]Origin)},
		bad:      make(map[string]bool),
		sections: make(map[string]position),
		redactor: redact.New(),
	}
}

func (l *loader) finish(environ []string) (Config, Report) {
	if !l.unread {
		l.inferProviders()
		l.readSecretFiles()
		l.readWellKnown(environ)
		l.findFiles()
		l.placeData()
		l.checkTogether()
	}
	for _, secret := range l.config.Secrets() {
		l.redactor.Add(secret.Reveal())
	}
	// A value that is repeated in a message may be a secret in the wrong place.
	for _, list := range [][]Problem{l.report.Problems, l.report.Warnings} {
		for i := range list {
			list[i].Message = l.redactor.String(list[i].Message)
			list[i].Key = l.redactor.String(list[i].Key)
			list[i].Hint = l.redactor.String(list[i].Hint)
		}
		sortProblems(list)
	}
	return l.config, l.report
}

// problem reports a complaint about a key, and remembers not to trust the key.
func (l *loader) problem(at Origin, key string, wrong *complaint) {
	l.bad[key] = true
	l.report.Problems = append(l.report.Problems, l.make(at, key, wrong))
}

func (l *loader) warning(at Origin, key string, wrong *complaint) {
	l.report.Warnings = append(l.report.Warnings, l.make(at, key, wrong))
}

func (l *loader) make(at Origin, key string, wrong *complaint) Problem {
	return Problem{
		File: at.name, Line: at.line, Column: at.column,
		Key: key, Message: wrong.message, Hint: wrong.hint, source: at.source, unread: wrong.unread, secret: wrong.secret,
	}
}

// inFile is the origin of what stands at a place in the file.
func (l *loader) inFile(at position) Origin {
	return Origin{source: fromFile, name: l.file, line: at.line, column: at.column}
}

// set gives a key its value, or reports why not.
func (l *loader) set(at Origin, k *key, value any, wrong *complaint) {
	if wrong != nil {
		l.problem(at, k.path, wrong)
		return
	}
	k.store(&l.config, value)
	l.report.origins[k.path] = at
}

func (l *loader) readFile() {
	data, wrong := readLimited(l.file, maxFileSize+4) // and a byte order mark
	if wrong != nil {
		if _, err := os.Stat(l.file); errors.Is(err, fs.ErrNotExist) {
			wrong.hint += ", or let toryo config init write one"
		}
		l.unread = true
		l.problem(l.inFile(position{}), "", wrong)
		return
	}
	l.readDocument(data)
}

// readLimited reads a file, or a little more of it than is allowed, so that the
// caller can tell.
func readLimited(path string, most int64) ([]byte, *complaint) {
	file, err := os.Open(path)
	if err != nil {
		wrong := complain(openHint(err), "the file cannot be read: %v", cause(err))
		wrong.unread = true
		return nil, wrong
	}
	defer func() { _ = file.Close() }() // nothing was written that could be lost
	info, err := file.Stat()
	if err == nil && info.IsDir() {
		return nil, complain("name a file in it", "this is a folder")
	}
	data, err := io.ReadAll(io.LimitReader(file, most))
	if err != nil {
		return nil, complain("", "the file cannot be read: %v", cause(err))
	}
	return data, nil
}

// TokenVariable has the token with which commands ask a server. It is not a key: the
// configuration is of servers and agents.
const TokenVariable = VariablePrefix + "TOKEN"

// readEnvironment takes the variables of Toryo out of the environment.
func (l *loader) readEnvironment(environ []string) {
	known := make(map[string]*key)
	for _, k := range l.schema.keys {
		known[k.variable()] = k
	}
	given := make(map[string]string)
	for _, line := range environ {
		name, value, _ := strings.Cut(line, "=")
		if strings.HasPrefix(name, VariablePrefix) && !strings.HasPrefix(name, VariablePrefix+"TEST_") && name != TokenVariable && value != "" {
			given[name] = value
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		at := Origin{source: fromEnvironment, name: name}
		if path, is := removedVariable(name); is {
			l.warning(at, path, removed[path])
			continue
		}
		k := known[name]
		var wrong *complaint
		if k == nil {
			k, wrong = l.entryVariable(name)
		}
		if k == nil {
			if wrong == nil {
				wrong = unknownVariable(name, known)
			}
			at.name = shortName(name)
			l.warning(at, "", wrong)
			continue
		}
		l.setText(at, k, given[name])
	}
}

func unknownVariable(name string, known map[string]*key) *complaint {
	names := slices.Sorted(maps.Keys(known))
	for i := range names {
		names[i] = plainName(names[i])
	}
	hint := "remove it"
	if meant := nearest(name, names); meant != "" {
		hint = "did you mean " + strings.ToUpper(meant) + "?"
	}
	return complain(hint, "unknown variable")
}

// readOverrides takes the values of flags.
func (l *loader) readOverrides(overrides map[string]string) {
	for _, path := range slices.Sorted(maps.Keys(overrides)) {
		at := Origin{source: fromFlag, name: commandLine}
		k := l.schema.byPath[path]
		if k == nil {
			l.problem(at, path, complain("", "unknown key"))
			continue
		}
		if k.kind == secretKind {
			l.redactor.Add(overrides[path])
			l.problem(at, path, secretElsewhere(k, "on the command line, where every user of the machine sees it"))
			continue
		}
		l.setText(at, k, overrides[path])
	}
}

// setText sets a key to what a variable or a flag says.
func (l *loader) setText(at Origin, k *key, text string) {
	if k.kind == secretKind {
		text = strings.TrimRight(text, "\r\n")
		l.redactor.Add(text)
	}
	value, wrong := k.parse(text)
	l.set(at, k, value, wrong)
}

func secretElsewhere(k *key, where string) *complaint {
	use := "use " + k.fileKey().name
	if k.variable() != "" {
		use += " or the variable " + k.variable()
	}
	return complain(use, "a secret must not stand %s", where)
}

// findFiles looks for the files that keys name, other than those of secrets, and
// gives the keys paths that can be opened from anywhere in the program.
func (l *loader) findFiles() {
	for _, k := range l.schema.inForce(&l.config) {
		path := shown(k.load(&l.config))
		if k.format != "file" || path == "" {
			continue
		}
		at := l.report.origins[k.path]
		path = l.from(at, path)
		k.store(&l.config, path)
		if _, wrong := readLimited(path, 1); wrong != nil {
			wrong.message = strconv.Quote(path) + ": " + wrong.message
			wrong.secret = k.path == tlsKey
			l.problem(at, k.path, wrong)
		}
	}
}

// from is a path as it counts where it was set: from the folder of the file for
// what the file says, from the working directory for what variables and flags
// say.
func (l *loader) from(at Origin, path string) string {
	if at.source != fromFile || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(l.file), path)
}
