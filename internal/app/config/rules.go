package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toryo-dev/toryo/internal/environment"
	"github.com/toryo-dev/toryo/internal/signing"
	"github.com/toryo-dev/toryo/internal/task"
)

// checkTogether checks the rules that tie several keys together. Each looks only
// at keys whose own value is right, so that one slip is reported once.
func (l *loader) checkTogether() {
	l.checkAllLabels()
	l.checkForges()
	l.checkApp()
	l.checkDatabase()
	l.checkTLS()
	l.checkOIDC()
	l.checkModels()
	l.checkBudget()
	l.checkServers()
	l.checkEnvironments()
	l.checkApproval()
	l.checkFixUps()
	l.checkLeases()
	l.checkPolling()
	l.checkSigning()
	l.checkNotifications()
}

// checkSigning makes sure that what is signed is shown as such, and that an SSH key can
// be used. Whether gpg takes an OpenPGP key is found out when it is asked.
func (l *loader) checkSigning() {
	c := l.config.Git
	if c.SigningKey == "" {
		return
	}
	if c.Email == "" {
		l.conflict(complain("set git.email to the address of the bot's account", "a key to sign with is set, but forges know no account by toryo@localhost"),
			"git.signing_key_file", "git.signing_key", "git.email")
	}
	if c.SigningFormat == "ssh" {
		if _, err := signing.SSH([]byte(c.SigningKey.Reveal())); err != nil {
			l.conflict(complain("make one with ssh-keygen -t ed25519 -N ''", "the key to sign with cannot be used: %s", plainCause(err)), "git.signing_key_file", "git.signing_key")
		}
	}
}

// plainCause is what an error says without what can be done.
func plainCause(err error) string {
	if coded, is := task.AsError(err); is {
		return coded.Message
	}
	return err.Error()
}

// checkApproval makes sure that there are plans where they have to be approved.
func (l *loader) checkApproval() {
	if l.config.Planning.Approval != "never" && len(l.config.Executors.Development) > 0 {
		l.conflict(complain("set planning.approval to never, or remove the command", "plans have to be approved, but a program of your own for development tasks makes none"),
			"planning.approval", "executors.development")
	}
}

// checkFixUps makes sure that comments are read that lead to changes.
func (l *loader) checkFixUps() {
	if !l.config.CommentDetection.ReviewComments && slices.Contains(l.config.Review.FixUpOn, "review_comments") {
		l.conflict(complain("remove review_comments from review.fix_up_on, or set comment_detection.review_comments to true", "comments on lines lead to changes, but are not read"),
			"review.fix_up_on", "comment_detection.review_comments")
	}
}

// checkLeases makes sure that one message that is lost does not cost a lease.
func (l *loader) checkLeases() {
	leases := l.config.Leases
	if 2*leases.RenewEvery >= leases.Duration {
		l.conflict(complain("renew more often, or let leases last longer", "leases would run out when one message is late: renew_every is %s and duration %s",
			leases.RenewEvery, leases.Duration), "leases.renew_every", "leases.duration")
	}
}

// checkPolling makes sure that trust does not lead to more requests.
func (l *loader) checkPolling() {
	polling := l.config.Polling
	if polling.Longest < polling.Shortest {
		l.conflict(complain("raise longest, or lower shortest", "with trusted webhooks forges would be asked more often than without: longest is %s and shortest %s",
			polling.Longest, polling.Shortest), "polling.longest", "polling.shortest")
	}
}

// conflict reports a problem between keys, at the first of them that somebody
// set.
func (l *loader) conflict(wrong *complaint, paths ...string) {
	if l.anyBad(paths...) {
		return
	}
	key, at := l.placeOf(paths)
	l.report.Problems = append(l.report.Problems, l.make(at, key, wrong))
}

// anyBad says whether the value of one of the keys was refused.
func (l *loader) anyBad(paths ...string) bool {
	return slices.ContainsFunc(paths, func(path string) bool { return l.bad[path] })
}

// placeOf finds where to point at: the first key that somebody set, or else the
// section of the first key, or else the file.
func (l *loader) placeOf(paths []string) (string, Origin) {
	for _, path := range paths {
		if at := l.report.origins[path]; !at.IsDefault() {
			return path, at
		}
	}
	for section := paths[0]; section != ""; section = section[:max(strings.LastIndex(section, "."), 0)] {
		if at, found := l.sections[section]; found {
			return paths[0], l.inFile(at)
		}
	}
	return paths[0], l.inFile(position{})
}

// checkForges makes sure that a forge which is configured is so in full.
func (l *loader) checkForges() {
	needs := map[task.Forge][]string{
		task.GitHub: {"owner", "bot_name"},
		task.GitLab: {"projects", "bot_name"},
		task.Gitea:  {"url", "owner", "bot_name"},
	}
	for _, forge := range l.config.ConfiguredForges() {
		for _, name := range needs[forge] {
			k := l.schema.byPath[join(string(forge), name)]
			if !l.isSet(k) {
				l.conflict(complain("set it, or remove what else is set for "+string(forge), "%s is configured (%s), but this key is missing", forge, l.configuredBy(forge)), k.path)
			}
		}
		if forge == task.GitHub && (l.config.GitHub.DescribesApp() || l.anyBad(appKeys...)) {
			continue
		}
		token := l.schema.byPath[join(string(forge), "token")]
		l.missingSecret(token, fmt.Sprintf("%s is configured (%s), but there is no token", forge, l.configuredBy(forge)), l.config.Account(forge).Variables[1:]...)
	}
}

// configuredBy is the origin of the first key that makes a forge configured.
func (l *loader) configuredBy(forge task.Forge) Origin {
	for _, name := range []string{
		"token", "token_file", "app_id", "app_installation_id", "app_name", "app_private_key", "app_private_key_file",
		"webhook_secret", "webhook_secret_file", "owner", "projects", "url",
	} {
		if at := l.report.origins[join(string(forge), name)]; !at.IsDefault() && !at.wellKnown {
			return at
		}
	}
	return Origin{}
}

// appKeys are the keys of a GitHub App, in the order in which one points at them.
var appKeys = []string{"github.app_id", "github.app_private_key_file", "github.app_private_key", "github.app_installation_id"}

// checkApp makes sure that GitHub sees one bot, and a GitHub App in full.
func (l *loader) checkApp() {
	github := l.config.GitHub
	if !github.DescribesApp() {
		return
	}
	switch {
	case github.Token != "" || github.TokenFile != "":
		tokens := []string{"github.token", "github.token_file"}
		l.conflict(complain("remove one of the two", "a GitHub App and an access token are both set"), slices.Concat(appKeys, tokens)...)
	case !github.UsesApp():
		l.conflict(complain("set github.app_id", "a GitHub App is described, but not named"), appKeys...)
	default:
		l.missingSecret(l.schema.byPath["github.app_private_key"], "a GitHub App is named, but its private key is missing")
	}
}

// isSet says whether a key has a value that is not nothing.
func (l *loader) isSet(k *key) bool { return shown(k.load(&l.config)) != "" }

// missingSecret warns when a secret is not there. It is no problem, so that a file
// can be checked where its secrets are not. Others are the well-known variables that
// would do too.
func (l *loader) missingSecret(secret *key, message string, others ...string) {
	named := secret.fileKey()
	if l.isSet(secret) || l.bad[secret.path] || l.bad[named.path] {
		return
	}
	ways := slices.Concat(others, []string{named.path})
	if secret.variable() != "" {
		ways = slices.Insert(ways, 0, secret.variable())
	}
	_, at := l.placeOf([]string{secret.path})
	l.warning(at, secret.path, complain("set "+listed(ways), "%s", message))
}

func (l *loader) checkDatabase() {
	given := l.config.Database.URL != ""
	switch {
	case l.config.Database.Driver == "postgres" && !given && !l.bad["database.url_file"]:
		l.conflict(complain("set TORYO_DATABASE_URL or database.url_file", "postgres needs the URL of the database"), "database.driver", "database.url")
	case l.config.Database.Driver == "sqlite" && given:
		l.conflict(complain("set database.driver: postgres, or remove the URL", "the URL of a database is given, but the driver is sqlite"), "database.driver", "database.url")
	}
}

func (l *loader) checkTLS() {
	if c := l.config.Server; (c.TLSCertFile == "") != (c.TLSKeyFile == "") {
		l.conflict(complain("set both, or none", "a certificate and its key belong together"), "server.tls_cert_file", "server.tls_key_file")
	}
}

// callbackPath is where the pages expect browsers that come back.
const callbackPath = "/signin/oidc/callback"

// checkOIDC makes sure that signing in elsewhere is described in full, and that it
// lets somebody in.
func (l *loader) checkOIDC() {
	c := l.config.OIDC
	people := len(c.AdminGroups) + len(c.OperatorGroups) + len(c.ViewerGroups) + len(c.Users)
	switch {
	case c.Issuer == "" && c.ClientID == "" && c.RedirectURL == "" && people == 0:
	case c.Issuer == "":
		l.conflict(complain("set oidc.issuer, or remove the rest", "signing in elsewhere is described, but the provider is missing"),
			"oidc.client_id", "oidc.redirect_url", "oidc.admin_groups", "oidc.operator_groups", "oidc.viewer_groups", "oidc.users", "oidc.issuer")
	case c.ClientID == "":
		l.conflict(complain("set it", "a provider is set, but not the name that Toryo has there"), "oidc.client_id", "oidc.issuer")
	case !strings.HasSuffix(c.RedirectURL, callbackPath):
		l.conflict(complain("give the address of the pages with "+callbackPath+" behind it", "browsers would not come back to the pages"), "oidc.redirect_url", "oidc.issuer")
	case people == 0:
		l.conflict(complain("name groups, or users; users: ['*'] lets everyone in", "nobody could sign in: neither groups nor users are named"), "oidc.users", "oidc.issuer")
	}
}

func (l *loader) checkEnvironments() {
	executor := l.config.CommandExecutor
	l.checkAllowed(executor)
	if _, known := executor.Environments[executor.DefaultEnvironment]; known || l.bad["command_executor.environments."+executor.DefaultEnvironment] {
		return
	}
	var names []string
	for _, k := range l.schema.inForce(&l.config) {
		if k.in.path == "command_executor.environments" {
			names = append(names, k.entry)
		}
	}
	l.conflict(complain("use "+listed(names), "there is no environment %s", show(executor.DefaultEnvironment)), "command_executor.default_environment")
}

// checkAllowed makes sure that the environments that are allowed exist, and that the
// default one is among them.
func (l *loader) checkAllowed(executor CommandExecutor) {
	if len(executor.Allowed) == 0 {
		return
	}
	names := environment.BuiltIn().WithImages(executor.Environments).Names()
	for _, name := range executor.Allowed {
		if !slices.Contains(names, name) {
			l.conflict(complain("use some of "+listed(names), "there is no environment %s", show(name)), "command_executor.allowed_environments")
			return
		}
	}
	if !slices.Contains(executor.Allowed, executor.DefaultEnvironment) {
		l.conflict(complain("add it, or set default_environment to "+listed(executor.Allowed), "the default environment %s is not allowed", show(executor.DefaultEnvironment)),
			"command_executor.allowed_environments", "command_executor.default_environment")
	}
}
