package command

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/connect"
	"github.com/toryo-dev/toryo/internal/redact"
	"github.com/toryo-dev/toryo/internal/task"
)

// maxSecretFile is far beyond any token or key.
const maxSecretFile = 64 << 10

// secretOfFlag is the secret in the file that a flag names, for a key of the configuration.
func (o *setup) secretOfFlag(flag, file, key string) (connect.Secret, error) {
	secret, err := o.readSecret(file)
	if err == nil {
		err = o.notOverridden(key, secret.Value)
	}
	if err != nil {
		return connect.Secret{}, named(flag, err)
	}
	return secret, nil
}

// notOverridden refuses a secret for a file while a variable has another one for the same key:
// a server would take that.
func (o *setup) notOverridden(key string, secret redact.Secret) error {
	variable := config.Variable(key)
	if set := strings.TrimRight(o.Variable(variable), "\r\n"); set != "" && set != secret.Reveal() {
		return connect.Overridden(key, variable)
	}
	return nil
}

// readSecret reads the file of a flag, or standard input. A file that can be read again stays
// where it is, and the configuration names it. The secret is what the loader of the configuration
// takes it for.
func (o *setup) readSecret(file string) (connect.Secret, error) {
	if file == "-" {
		line, err := readLine(o.Stdin)
		if value := strings.TrimSpace(line); err == nil && value != "" {
			return connect.Secret{Value: redact.Secret(value)}, nil
		}
		return connect.Secret{}, task.Errorf(task.Usage, "there is no secret on standard input")
	}
	opened, err := os.Open(file)
	if err != nil {
		return connect.Secret{}, task.Wrap(task.Usage, err, "the file cannot be read")
	}
	defer func() { _ = opened.Close() }() // nothing was written
	info, err := opened.Stat()
	if err != nil {
		return connect.Secret{}, task.Wrap(task.Usage, err, "the file cannot be read")
	}
	content, err := io.ReadAll(io.LimitReader(opened, maxSecretFile+1))
	value := strings.TrimRight(string(content), "\r\n")
	switch {
	case err != nil:
		return connect.Secret{}, task.Wrap(task.Usage, err, "the file cannot be read")
	case strings.TrimSpace(value) == "" || len(content) > maxSecretFile || strings.ContainsAny(value, "\r\n"):
		return connect.Secret{}, task.Errorf(task.Usage, "%s does not hold one secret and nothing else", file)
	}
	secret := connect.Secret{Value: redact.Secret(value)}
	if full, err := filepath.Abs(file); err == nil && staysReadable(full, info) {
		secret.File = full
	}
	return secret, nil
}

// staysReadable reports whether a file can be read again by another process. A pipe, such as
// that of <(command) in a shell, cannot, and what is in these folders is another file for each
// process.
func staysReadable(full string, info fs.FileInfo) bool {
	return info.Mode().IsRegular() && !strings.HasPrefix(full, "/dev/") && !strings.HasPrefix(full, "/proc/")
}

// secretOf is a secret as it was typed.
func secretOf(typed string) redact.Secret { return redact.Secret(strings.TrimSpace(typed)) }
