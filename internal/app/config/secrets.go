package config

import (
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/toryo-dev/toryo/internal/lazyregexp"
	"github.com/toryo-dev/toryo/internal/redact"
)

// maxSecretSize is far beyond any token, key or URL.
const maxSecretSize = 64 << 10

// Secrets lists every secret that is set, the values of the environment variables that
// programs are given, and with the URL of the database the password in it, since that is
// what turns up in the messages of others. Give them to a [redact.Redactor].
func (c Config) Secrets() []redact.Secret {
	var all []redact.Secret
	for _, k := range keys().inForce(&c) {
		if secret, ok := k.load(&c).(redact.Secret); ok && secret != "" {
			all = append(all, secret)
		}
	}
	for _, secret := range c.VendorKeys {
		all = append(all, secret)
	}
	all = append(append(all, c.Passed...), c.cloudSecrets()...)
	if password := databasePassword(c.Database.URL.Reveal()); password != "" {
		all = append(all, redact.Secret(password))
	}
	return all
}

// readPassed notes the values of variables that programs are given: what programs
// need to be given by name is mostly a key, and comes out of them again.
func (l *loader) readPassed(environ []string) {
	names := slices.Clone(l.config.Executors.Variables)
	for _, server := range l.config.MCPServers {
		names = append(names, server.Environment...)
	}
	for _, variable := range environ {
		if name, value, _ := strings.Cut(variable, "="); slices.Contains(names, name) && value != "" {
			l.config.Passed = append(l.config.Passed, redact.Secret(value))
		}
	}
}

// Redactor returns a redactor that knows every secret of the configuration.
func (c Config) Redactor() *redact.Redactor {
	r := redact.New()
	for _, secret := range c.Secrets() {
		r.Add(secret.Reveal())
	}
	return r
}

var passwordSetting = lazyregexp.New(`(?:^|\s)password\s*=\s*(?:'((?:[^'\\]|\\.)*)'|(\S+))`)

// databasePassword finds the password in either form of a connection string.
func databasePassword(connection string) string {
	if strings.Contains(connection, "://") {
		address, err := url.Parse(connection)
		if err != nil {
			return ""
		}
		if password, ok := address.User.Password(); ok {
			return password
		}
		return address.Query().Get("password")
	}
	found := passwordSetting.FindStringSubmatch(connection)
	if found == nil {
		return ""
	}
	if found[2] != "" {
		return found[2]
	}
	return strings.NewReplacer(`\'`, `'`, `\\`, `\`).Replace(found[1])
}

// readSecretFiles reads the files that the *_file keys name. What is set later
// wins: a variable with the secret goes over a file that the configuration file
// names, a file that a flag names goes over both.
func (l *loader) readSecretFiles() {
	for _, secret := range l.schema.inForce(&l.config) {
		if secret.kind != secretKind {
			continue
		}
		named := secret.fileKey()
		path := shown(named.load(&l.config))
		if path == "" || l.bad[named.path] {
			continue
		}
		at := l.report.origins[named.path]
		direct := l.report.origins[secret.path]
		switch {
		case direct.source > at.source:
			continue
		case direct.source == at.source:
			l.problem(at, named.path, complain("set only one of them", "%s is set too", direct.name))
			continue
		}
		l.readSecretFile(secret, named, path, at)
	}
}

func (l *loader) readSecretFile(secret, named *key, path string, at Origin) {
	path = l.from(at, path)
	text, planned := l.plannedSecret(path)
	var wrong *complaint
	if !planned {
		text, wrong = secretFrom(path)
	}
	if wrong == nil {
		l.redactor.Add(text)
		wrong = secret.checkText(text)
	}
	if wrong != nil {
		wrong.message = strconv.Quote(path) + ": " + wrong.message
		wrong.secret = true
		l.problem(at, named.path, wrong)
		return
	}
	at.via = named.name
	l.set(at, secret, redact.Secret(text), nil)
	if !planned && readableByAll(path) {
		at.via = ""
		l.warning(at, named.path, complain("run chmod 600 on it", "every user of this machine can read %s", strconv.Quote(path)))
	}
}

// plannedSecret is what will be in a file that is about to be written.
func (l *loader) plannedSecret(path string) (text string, planned bool) {
	full, err := filepath.Abs(path)
	if err != nil {
		return "", false
	}
	secret, planned := l.planned[full]
	return secret.Reveal(), planned
}

func secretFrom(path string) (string, *complaint) {
	data, wrong := readLimited(path, maxSecretSize+1)
	if wrong != nil {
		return "", wrong
	}
	if len(data) > maxSecretSize {
		return "", complain("give it the secret and nothing else", "the file is larger than %d KiB", maxSecretSize>>10)
	}
	text := strings.TrimRight(string(data), "\r\n")
	if strings.TrimSpace(text) == "" {
		return "", complain("write the secret into it", "the file is empty")
	}
	return text, nil
}

// readableByAll looks at the permission bits, which mean nothing on Windows.
func readableByAll(path string) bool {
	info, err := os.Stat(path)
	return err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o004 != 0
}

// cause is the bare reason of an error of package os: the path is in the message
// already.
func cause(err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return at.Err
	}
	return err
}

func openHint(err error) string {
	if errors.Is(err, fs.ErrPermission) {
		return "let the user that runs Toryo read it"
	}
	return "check the path"
}
