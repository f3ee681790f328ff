package connect

import (
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/lazyregexp"
	"github.com/toryo-dev/toryo/internal/redact"
	"github.com/toryo-dev/toryo/internal/task"
)

// secretFile is a file that is to hold a secret.
type secretFile struct {
	path   string // in full
	secret redact.Secret
	same   bool // it does so already
}

// plan decides which keys are changed and which files hold secrets, without changing anything.
func (w *work) plan() error {
	w.changes.Set = w.answers.settings(w.loaded)
	section := string(w.answers.Forge)
	for _, one := range []struct {
		key, file string
		secret    Secret
	}{
		{section + ".token_file", section + "-token", w.answers.Token},
		{"llm.api_key_file", "llm-api-key", w.answers.Model.Key},
		{appKeyFile, "github-app-key", Secret{Value: w.answers.App.PrivateKey}},
		{"github.webhook_secret_file", "github-webhook-secret", Secret{Value: w.answers.App.WebhookSecret}},
	} {
		if err := w.planSecret(one.key, one.file, one.secret); err != nil {
			return err
		}
	}
	if err := w.planWebhookSecret(); err != nil {
		return err
	}
	w.changes.Remove = w.answers.obsolete(w.changes.Set)
	return nil
}

// planSecret sets the key of a file with a secret, and chooses the file if the secret is nowhere
// else.
func (w *work) planSecret(key, name string, secret Secret) error {
	path := secret.File
	if !secret.stays() {
		file, err := w.fileFor(name, secret.Value)
		if err != nil {
			return err
		}
		w.files = append(w.files, file)
		path = file.path
	}
	if path == "" {
		return nil
	}
	named, err := inConfig(w.ConfigFile, path)
	w.changes.Set[key] = named
	return err
}

// mostSecretFiles is how many names there are for the file of a secret.
const mostSecretFiles = 9

// numbered is what tells the names for the file of a secret from each other.
var numbered = lazyregexp.New(`-[2-9]$`)

// secretPaths are the files that may hold a secret, the one that is preferred first.
func (w *work) secretPaths(name string) []string {
	paths := []string{filepath.Join(w.DataDir, secretFolder, name)}
	for number := 2; number <= mostSecretFiles; number++ {
		paths = append(paths, fmt.Sprintf("%s-%d", paths[0], number))
	}
	return paths
}

// fileFor chooses the file for a secret: one that holds it already, or else one that is not in
// use. One that the configuration names keeps what it holds until another is named in its place;
// one that is there and not in the record is somebody else's, and is never written, nor is a link.
func (w *work) fileFor(name string, secret redact.Secret) (secretFile, error) {
	secrets, err := w.record.data.secrets()
	if err != nil {
		return secretFile{}, err
	}
	defer secrets.close()
	paths := w.secretPaths(name)
	unused := ""
	for _, path := range paths {
		if secrets.isOther(filepath.Base(path)) {
			continue
		}
		now, there, err := secrets.readSecret(filepath.Base(path))
		if err != nil {
			return secretFile{}, err
		}
		if there && now == secret.Reveal() {
			return secretFile{path, secret, true}, nil
		}
		if unused == "" && (!there || w.record.hasSecret(path) && !isOneOf(path, maps.Values(w.named))) {
			unused = path
		}
	}
	if unused == "" {
		return secretFile{}, task.Errorf(task.Conflict, "%s and others like it are not toryo init's to write", paths[0]).WithHint("move them elsewhere")
	}
	return secretFile{path: unused, secret: secret}, nil
}

// planWebhookSecret finds the secret of webhooks, or makes one.
func (w *work) planWebhookSecret() error {
	if !w.answers.Webhook || w.kind.Forge == "" {
		return nil
	}
	if w.secret = WebhookSecretOf(w.loaded, w.kind.Forge); w.secret != "" && !w.elsewhere() {
		return nil
	}
	name := string(w.kind.Forge) + "-webhook-secret"
	made, err := w.earlierSecret(name)
	if err != nil {
		return err
	}
	if made == "" || w.elsewhere() {
		random := make([]byte, 32)
		if _, err := io.ReadFull(w.Random, random); err != nil {
			return task.Wrap(task.Internal, err, "no secret can be made")
		}
		made = hex.EncodeToString(random)
	}
	w.secret = redact.Secret(made)
	return w.planSecret(string(w.kind.Forge)+".webhook_secret_file", name, Secret{Value: w.secret})
}

// elsewhere reports whether another forge of the same sort was configured before. It could sign
// what the new one delivers, if they had one secret.
func (w *work) elsewhere() bool {
	before := w.loaded.Account(w.kind.Forge)
	return before.URL != "" && !sameHook(before.URL, w.answers.URL) && (before.Credentials || WebhookSecretOf(w.loaded, w.kind.Forge) != "")
}

// earlierSecret is a secret that an Apply has written which was cut short before a key could
// name its file; empty if there is none.
func (w *work) earlierSecret(name string) (string, error) {
	secrets, err := w.record.data.secrets()
	if err != nil {
		return "", err
	}
	defer secrets.close()
	for _, path := range w.secretPaths(name) {
		if !w.record.hasSecret(path) || secrets.isOther(filepath.Base(path)) {
			continue
		}
		if now, _, err := secrets.readSecret(filepath.Base(path)); err != nil || now != "" {
			return now, err
		}
	}
	return "", nil
}

// check makes sure that the configuration will be right, and that a server uses what was checked
// before. What is in files that are not written yet counts too.
func (w *work) check() error {
	edited, err := config.Edit(w.text, w.changes)
	if err != nil {
		return err
	}
	planned := map[string]redact.Secret{}
	for _, file := range w.files {
		planned[file.path] = file.secret
	}
	after, report := config.LoadPlanned(w.ConfigFile, edited, planned, w.Environ, w.Overrides)
	w.willBe = report.SecretFiles(after)
	if key, variable := report.Overridden(after, w.changes); key != "" {
		return Overridden(key, variable)
	}
	if err := report.Err(); err != nil {
		return err
	}
	if err := w.checkSecrets(after, report); err != nil {
		return err
	}
	return w.checkKeys(after, report)
}

// checkSecrets makes sure that the secrets in force are those of the answers. Those that are in
// a variable are found by the server as they were found by us.
func (w *work) checkSecrets(after config.Config, report config.Report) error {
	section := string(w.answers.Forge)
	for _, one := range []struct {
		key     string
		want    Secret
		inForce redact.Secret
	}{
		{section + ".token", w.answers.Token, TokenOf(after, w.answers.Forge)},
		{section + ".webhook_secret", Secret{Value: w.secret}, WebhookSecretOf(after, w.answers.Forge)},
		{"llm.api_key", w.answers.Model.Key, after.LLM.APIKey},
		{"github.app_private_key", Secret{Value: w.answers.App.PrivateKey}, after.GitHub.AppPrivateKey},
		{"github.webhook_secret", Secret{Value: w.answers.App.WebhookSecret}, after.GitHub.WebhookSecret},
	} {
		if one.want.Value == "" || one.want.Variable != "" || one.want.Value == one.inForce {
			continue
		}
		origin := report.Origin(one.key)
		if variable := origin.Variable(); variable != "" {
			return Overridden(one.key, variable)
		}
		return task.Errorf(task.Conflict, "the server would take another %s than the one that was checked (%s)", one.key, origin).
			WithHint("let the file hold the secret and nothing else, without spaces")
	}
	return nil
}

// Overridden is that a variable goes over a key of the configuration, so that a server does not
// use what was checked.
func Overridden(key, variable string) error {
	return task.Errorf(task.Conflict, "the variable %s is set and goes over %s in the configuration", variable, key).
		WithHint("unset %s, here and where the server is started, or give it the new value, and try again", variable)
}

// hasSecret reports whether a file with a secret is one that we have written, or were about to.
// The data directory may have been moved since.
func (r *record) hasSecret(path string) bool {
	return slices.ContainsFunc(r.Secrets, func(noted string) bool { return filepath.Base(noted) == filepath.Base(path) })
}
