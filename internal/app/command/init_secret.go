package command

import (
	"context"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/connect"
	"github.com/toryo-dev/toryo/internal/redact"
	"github.com/toryo-dev/toryo/internal/task"
)

// maxSecretFile is far beyond any token or key.
const maxSecretFile = 64 << 10

// secretOfFlag is the secret in the file that a flag names, for a key of the configuration. If the
// server cannot read that, it gets a file with the same secret.
func (i *interview) secretOfFlag(ctx context.Context, flag, file, key string) (connect.Secret, error) {
	secret, err := i.readSecret(file)
	if err == nil {
		err = i.notOverridden(key, secret.Value)
	}
	if err != nil {
		return connect.Secret{}, named(flag, err)
	}
	if secret.File != "" && !i.serviceReads(ctx, secret.File) {
		i.say("  %s gets the secret of %s in a file of its own.", i.owned, secret.File)
		secret.File = ""
	}
	return secret, nil
}

// secretOfVariable is a secret in a variable, where it stays. A server that another user runs has
// not the variables of root: it gets a file, unless the variable would go over that.
func (i *interview) secretOfVariable(secret connect.Secret, key, what, who string) connect.Secret {
	if i.owned != "" && secret.Variable != config.Variable(key) {
		i.say("  The %s is taken from %s, and %s gets it in a file.", what, secret.Variable, i.owned)
		return connect.Secret{Value: secret.Value}
	}
	i.say("  The %s is taken from %s, which has to be set whenever %s started.", what, secret.Variable, who)
	return secret
}

// besideConfig reports whether a file is below the folder of the configuration or of the data.
func (i *interview) besideConfig(file string) bool {
	return below(filepath.Dir(i.at.file), file) || below(i.at.data, file)
}

func below(folder, file string) bool {
	inside, err := filepath.Rel(folder, file)
	return err == nil && filepath.IsLocal(inside)
}

// hidden are folders in which a service of systemd sees nothing, or not what others see.
var hidden = []string{"/tmp", "/var/tmp", "/home", "/root", "/run/user"}

// serviceReads reports whether the server will be able to read a file, also as a service.
func (i *interview) serviceReads(ctx context.Context, file string) bool {
	if i.owned == "" {
		return true
	}
	if !connect.OwnerReads(ctx, i.at.data, file) {
		return false
	}
	if at, err := filepath.EvalSymlinks(file); err == nil {
		file = at
	}
	return i.besideConfig(file) || !slices.ContainsFunc(hidden, func(folder string) bool { return below(folder, file) })
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

// askToken finds the token, and asks the forge whose it is.
func (i *interview) askToken(ctx context.Context) error {
	if !i.newToken {
		if used, err := i.useKnownToken(ctx); used || err != nil {
			return err
		}
	}
	if err := i.notOverridden(string(i.kind.Forge)+".token", ""); err != nil {
		return err
	}
	i.say("  Create a token at %s\n  with the account of the bot. It needs %s.", i.kind.TokenPage(i.answers.URL), i.kind.Needs)
	_, err := i.answer(ctx, initQuestion{
		text: "Access token of the bot (it is not shown)", flag: "token-file", hidden: true,
		check: func(answer string) error { return i.useToken(ctx, connect.Secret{Value: secretOf(answer)}) },
	})
	return err
}

// useKnownToken uses the token that need not be asked for, or the GitHub App that is configured,
// if there is one. Where a person can give another, that it does not work is no error.
func (i *interview) useKnownToken(ctx context.Context) (used bool, err error) {
	secret, err := i.knownToken(ctx)
	app := i.kind.Forge == task.GitHub && i.at.loaded.GitHub.UsesApp() && i.isConfigured()
	if err != nil || secret.Value == "" && !app {
		return false, err
	}
	if !i.addressGiven() {
		return false, task.Errorf(task.Usage, "no token is sent to %s, which only a git remote names", i.answers.URL).
			WithHint("give --url %s if that is the forge", i.answers.URL)
	}
	err = i.useToken(ctx, secret)
	if err == nil || !i.canAsk() || i.tokenFile != "" || ctx.Err() != nil {
		return err == nil, err
	}
	i.sayWrong(err)
	return false, nil
}

// addressGiven reports whether a token may be sent to the address: one of a flag, of the
// configuration or of the forge's own site, or one that a person has seen. A git remote can name
// any host, and whoever has made the repository has chosen it.
func (i *interview) addressGiven() bool {
	return i.canAsk() || i.url != "" || i.answers.URL == i.kind.URL || i.isConfigured()
}

// isConfigured reports whether the address is that of the configuration.
func (i *interview) isConfigured() bool {
	return strings.EqualFold(i.answers.URL, connect.Address(i.at.loaded.Account(i.kind.Forge).URL))
}

// knownToken is the token that need not be asked for: that of the flag, of the configuration
// or of the environment.
func (i *interview) knownToken(ctx context.Context) (connect.Secret, error) {
	if i.tokenFile != "" {
		return i.secretOfFlag(ctx, "token-file", i.tokenFile, string(i.kind.Forge)+".token")
	}
	if i.at.loaded.Account(i.kind.Forge).Credentials && i.isConfigured() {
		return connect.Secret{Value: connect.TokenOf(i.at.loaded, i.kind.Forge), Configured: true}, nil
	}
	if variable, token := config.FindToken(i.kind.Forge, i.answers.URL, i.Environ); variable != "" {
		return i.secretOfVariable(connect.Secret{Value: token, Variable: variable}, string(i.kind.Forge)+".token", "token", "the server is"), nil
	}
	return connect.Secret{}, nil
}

// useToken keeps a token that the forge takes.
func (i *interview) useToken(ctx context.Context, secret connect.Secret) error {
	made, err := i.opener(i.at.loaded)(connect.Target{Forge: i.kind.Forge, URL: i.answers.URL, Token: secret.Value})
	if err != nil {
		return err
	}
	login, err := connect.Whom(ctx, made, i.kind, i.answers.URL)
	if err != nil {
		return err
	}
	i.forge, i.answers.Token, i.answers.Bot = made, secret, login
	i.say("  ✓ %s knows it as %s: assigning %s to an issue starts a task", i.answers.URL, login, login)
	return nil
}
