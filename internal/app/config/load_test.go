package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toryo-dev/toryo/internal/redact"
	"github.com/toryo-dev/toryo/internal/task"
)

func TestVariablesGoOverTheFileAndFlagsOverBoth(t *testing.T) {
	t.Parallel()
	file := "log: {level: debug, format: json}\nserver: {addr: 127.0.0.1:1}\nlanguage: ja\n"
	environ := []string{"PATH=/bin", "TORYO_LOG_FORMAT=text", "TORYO_SERVER_ADDR=127.0.0.1:2", "TORYO_LANGUAGE="}
	config, report := parse("toryo.yaml", []byte(file), environ, map[string]string{"server.addr": "127.0.0.1:3"})
	if len(report.Problems)+len(report.Warnings) > 0 {
		t.Fatalf("%v %v", lines(report.Problems), lines(report.Warnings))
	}
	for _, test := range []struct{ key, value, want, origin string }{
		{"log.level", config.Log.Level, "debug", "toryo.yaml:1"},
		{"log.format", config.Log.Format, "text", "TORYO_LOG_FORMAT"},
		{"server.addr", config.Server.Addr, "127.0.0.1:3", "flag"},
		{"language", config.Language, "ja", "toryo.yaml:3"}, // set to nothing is not set
		{"contexts_dir", config.ContextsDir, "contexts", "default"},
	} {
		if test.value != test.want || report.Origin(test.key).String() != test.origin {
			t.Errorf("%s = %s (%s), want %s (%s)", test.key, test.value, report.Origin(test.key), test.want, test.origin)
		}
	}
}

func TestEveryKindOfVariable(t *testing.T) {
	t.Parallel()
	want := Default()
	want.CommentDetection = CommentDetection{Enabled: false, CheckInterval: 7, AcceptFrom: "write_or_author", ReviewComments: true}
	want.GitLab.Projects = []string{"a/b", "c/d"}
	want.GitLab.BotName = "bot"
	want.GitLab.Token = "glpat-0123456789"
	want.LLM.Prices.Output, want.LLM.OwnPrices = 12.5, true
	half := 0.5
	want.LLM.Temperature = &half
	want.CommandExecutor.Environments["go"] = "golang:2"
	want.CommandExecutor.Environments["rust"] = "rust:1"
	want.SyncInterval = 90 * time.Second
	want.Sandbox.Memory, want.Sandbox.Disk, want.Sandbox.CPUs = 512*MiB, 1<<30, 0.5
	want.Executors.Review = Command{"sh", "-c", "sh"}

	got, report := Load("", []string{
		"TORYO_SYNC_INTERVAL=1m30s",
		"TORYO_SANDBOX_MEMORY=512MiB",
		"TORYO_SANDBOX_DISK=1073741824",
		"TORYO_SANDBOX_CPUS=0.5",
		"TORYO_EXECUTORS_REVIEW=sh, -c, sh",
		"TORYO_COMMENT_DETECTION_ENABLED=false",
		"TORYO_COMMENT_DETECTION_CHECK_INTERVAL=7",
		"TORYO_GITLAB_PROJECTS=a/b, c/d",
		"TORYO_GITLAB_BOT_NAME=bot",
		"TORYO_GITLAB_TOKEN=glpat-0123456789\n",
		"TORYO_LLM_PRICES_OUTPUT=12.5",
		"TORYO_LLM_TEMPERATURE=0.5",
		"TORYO_COMMAND_EXECUTOR_ENVIRONMENTS_GO=golang:2",
		"TORYO_COMMAND_EXECUTOR_ENVIRONMENTS_RUST=rust:1",
		"TORYO_TEST_REQUIRE_ALL=1",
	}, nil)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
	if len(report.Problems)+len(report.Warnings) > 0 {
		t.Errorf("%v %v", lines(report.Problems), lines(report.Warnings))
	}
}

func TestBadVariablesAreNamed(t *testing.T) {
	t.Parallel()
	_, report := Load("", []string{
		"TORYO_PAUSE_RESUME_PAUSED_TASK_EXPIRY_DAYS=often",
		"TORYO_TASK_STOP_CHECK_INTERVAL=often",
		"TORYO_COMMENT_DETECTION_ENABLED=on",
		"TORYO_GITLAB_PROJECTS=a/b,,c/d",
		"TORYO_GITHB_TOKEN=ghp_0123456789abcdef",
		"TORYO_SERVER=x",
		"TORYO_Q=x",
		"TORYO_SANDBOX_COMMAND_TIMEOUT=5",
		"TORYO_SANDBOX_OUTPUT_LIMIT=2GiB",
		"TORYO_SANDBOX_NETWORK_HOSTS=a.example,https://b.example",
		"TORYO_LLM_OVERRIDES_SUMMARY_MODEL=m",
		"TORYO_MCP_SERVERS_X_URL=http://h",
	}, nil)
	wantProblems := []string{
		`TORYO_COMMENT_DETECTION_ENABLED: comment_detection.enabled: "on" is not true or false; use true or false`,
		"TORYO_GITLAB_PROJECTS: gitlab.projects: entry 2 is empty; remove it",
		`TORYO_PAUSE_RESUME_PAUSED_TASK_EXPIRY_DAYS: pause_resume.paused_task_expiry_days: "often" is not a whole number; write it in plain digits, without quotes`,
		`TORYO_SANDBOX_COMMAND_TIMEOUT: sandbox.command_timeout: "5" is not a duration; write it like 30s, 5m or 2h`,
		`TORYO_SANDBOX_NETWORK_HOSTS: sandbox.network.hosts: "https://b.example" is not the name of a host; write it like example.com, *.example.com or example.com:8443`,
		"TORYO_SANDBOX_OUTPUT_LIMIT: sandbox.output_limit: 2GiB is too large; the most is 1GiB",
	}
	if diff := cmp.Diff(wantProblems, lines(report.Problems)); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	wantWarnings := []string{
		"TORYO_GITHB_TOKEN: unknown variable; did you mean TORYO_GITHUB_TOKEN?",
		"TORYO_LLM_OVERRIDES_SUMMARY_MODEL: variables do not reach into llm_overrides; set it in the configuration file",
		"TORYO_MCP_SERVERS_X_URL: variables do not reach into mcp_servers; set it in the configuration file",
		"TORYO_Q: unknown variable; remove it",
		"TORYO_SERVER: unknown variable; did you mean TORYO_SERVER_ADDR?",
		"TORYO_TASK_STOP_CHECK_INTERVAL: task_stop.check_interval: removed, it has no effect: a stop interrupts a run at once and waits for no look; remove it",
	}
	if diff := cmp.Diff(wantWarnings, lines(report.Warnings)); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

func TestBadFlags(t *testing.T) {
	t.Parallel()
	_, report := Load("", nil, map[string]string{"github.token": "ghp_0123456789abcdef", "no.such": "x", "server.addr": "x"})
	want := []string{
		"command line: github.token: a secret must not stand on the command line, where every user of the machine sees it; use token_file or the variable TORYO_GITHUB_TOKEN",
		"command line: no.such: unknown key",
		`command line: server.addr: "x" is not an address of the form host:port; write it like 127.0.0.1:8750`,
	}
	if diff := cmp.Diff(want, lines(report.Problems)); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

// folder makes a folder with files; those whose name begins with "open" can be
// read by everyone.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		mode := os.FileMode(0o600)
		if strings.HasPrefix(name, "open") {
			mode = 0o644
		}
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const forge = "github:\n  owner: o\n  bot_name: b\n"

func TestSecretFiles(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		config   string
		environ  []string
		flags    map[string]string
		token    redact.Secret
		origin   string
		problems []string
		warnings []string
	}{
		"beside the configuration file": {
			config: forge + "  token_file: token\n",
			token:  "ghp_from_file", origin: "token_file, DIR/toryo.yaml:4",
		},
		"with Windows line end": {
			config: forge + "  token_file: windows\n",
			token:  "ghp_windows", origin: "token_file, DIR/toryo.yaml:4",
		},
		"readable by all": {
			config: forge + "  token_file: open-token\n",
			token:  "ghp_from_open_file", origin: "token_file, DIR/toryo.yaml:4",
			warnings: []string{`DIR/toryo.yaml:4:3: github.token_file: every user of this machine can read "DIR/open-token"; run chmod 600 on it`},
		},
		"variable goes over the file": {
			config:  forge + "  token_file: none\n",
			environ: []string{"TORYO_GITHUB_TOKEN=ghp_from_variable"},
			token:   "ghp_from_variable", origin: "TORYO_GITHUB_TOKEN",
		},
		"flag goes over the variable": {
			config:  forge,
			environ: []string{"TORYO_GITHUB_TOKEN=ghp_from_variable"},
			flags:   map[string]string{"github.token_file": "DIR/token"},
			token:   "ghp_from_file", origin: "token_file, flag",
		},
		"file named by a variable": {
			config:  forge,
			environ: []string{"TORYO_GITHUB_TOKEN_FILE=DIR/token"},
			token:   "ghp_from_file", origin: "token_file, TORYO_GITHUB_TOKEN_FILE",
		},
		"two variables": {
			config:  forge,
			environ: []string{"TORYO_GITHUB_TOKEN_FILE=DIR/token", "TORYO_GITHUB_TOKEN=ghp_from_variable"},
			token:   "ghp_from_variable", origin: "TORYO_GITHUB_TOKEN",
			problems: []string{"TORYO_GITHUB_TOKEN_FILE: github.token_file: TORYO_GITHUB_TOKEN is set too; set only one of them"},
		},
		"missing": {
			config: forge + "  token_file: none\n", origin: "default",
			problems: []string{`DIR/toryo.yaml:4:3: github.token_file: "DIR/none": the file cannot be read: no such file or directory; check the path`},
		},
		"empty": {
			config: forge + "  token_file: empty\n", origin: "default",
			problems: []string{`DIR/toryo.yaml:4:3: github.token_file: "DIR/empty": the file is empty; write the secret into it`},
		},
		"folder": {
			config: forge + "  token_file: .\n", origin: "default",
			problems: []string{`DIR/toryo.yaml:4:3: github.token_file: "DIR": this is a folder; name a file in it`},
		},
		"too large": {
			config: forge + "  token_file: large\n", origin: "default",
			problems: []string{`DIR/toryo.yaml:4:3: github.token_file: "DIR/large": the file is larger than 64 KiB; give it the secret and nothing else`},
		},
		"several lines": {
			config: forge + "  token_file: lines\n", origin: "default",
			problems: []string{`DIR/toryo.yaml:4:3: github.token_file: "DIR/lines": the value has a line break or another control character; write it on one line`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := folder(t, map[string]string{
				"toryo.yaml": test.config, "token": "ghp_from_file\n", "windows": "ghp_windows\r\n", "open-token": "ghp_from_open_file",
				"empty": " \n", "large": strings.Repeat("x", 70<<10), "lines": "ghp_one_line\nghp_two_line\n",
			})
			here := func(texts []string) []string {
				var all []string
				for _, text := range texts {
					all = append(all, strings.ReplaceAll(text, "DIR", dir))
				}
				return all
			}
			for key, value := range test.flags {
				test.flags[key] = strings.ReplaceAll(value, "DIR", dir)
			}
			config, report := Load(filepath.Join(dir, "toryo.yaml"), here(test.environ), test.flags)
			if config.GitHub.Token != test.token {
				t.Errorf("token is %q, want %q", config.GitHub.Token.Reveal(), test.token.Reveal())
			}
			if want := strings.ReplaceAll(test.origin, "DIR", dir); report.Origin("github.token").String() != want {
				t.Errorf("origin is %s, want %s", report.Origin("github.token"), want)
			}
			if diff := cmp.Diff(here(test.problems), lines(report.Problems)); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(here(test.warnings), lines(report.Warnings)); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheDatabase(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		environ []string
		want    []string
	}{
		"postgres by URL":      {environ: []string{"TORYO_DATABASE_DRIVER=postgres", "TORYO_DATABASE_URL=postgres://u:p@h/d"}},
		"postgres by settings": {environ: []string{"TORYO_DATABASE_DRIVER=postgres", "TORYO_DATABASE_URL=host=h user=u"}},
		"sqlite with a URL": {
			environ: []string{"TORYO_DATABASE_URL=postgres://u:p@h/d"},
			want:    []string{"TORYO_DATABASE_URL: database.url: the URL of a database is given, but the driver is sqlite; set database.driver: postgres, or remove the URL"},
		},
		"a URL of something else is not repeated": {
			environ: []string{"TORYO_DATABASE_DRIVER=postgres", "TORYO_DATABASE_URL=mysql://u:hunter2@h/d"},
			want:    []string{"TORYO_DATABASE_URL: database.url: the value is not a URL of PostgreSQL; write it like postgres://user:password@host:5432/database"},
		},
		"a broken URL is not repeated": {
			environ: []string{"TORYO_DATABASE_DRIVER=postgres", "TORYO_DATABASE_URL=postgres://u:hunter2@h:port/d"},
			want:    []string{"TORYO_DATABASE_URL: database.url: the value is not a URL of PostgreSQL; write it like postgres://user:password@host:5432/database"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, report := Load("", test.environ, nil)
			if diff := cmp.Diff(test.want, lines(report.Problems)); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNothingPrintsASecret(t *testing.T) {
	t.Parallel()
	const secret = "ghp_0123456789abcdef"
	text := "github:\n  token: " + secret + "\n  owner: " + secret + "/x\n  bot_name: b\n" + secret + ": 1\nroles: {glpat-0123456789: {}}\nllm_overrides: {glpat-0123456789x: {}}\nserver:\n  addr: " + secret + "\n"
	config, report := parse("toryo.yaml", []byte(text), []string{
		"TORYO_GITLAB_TOKEN=glpat-0123456789",
		"TORYO_DATABASE_URL=postgres://me:pass-word-12@host/db",
		"TORYO_LLM_MODEL=glpat-0123456789", // a slip of the hand
	}, map[string]string{"llm.api_key": "sk-0123456789"})

	var out strings.Builder
	if err := report.Print(&out, config); err != nil {
		t.Fatal(err)
	}
	for _, p := range append(report.Problems, report.Warnings...) {
		out.WriteString(p.String() + "\n")
	}
	out.WriteString(report.Err().Error())
	for _, hidden := range []string{secret, "glpat-0123456789", "pass-word-12", "sk-0123456789"} {
		if strings.Contains(out.String(), hidden) {
			t.Errorf("%q is printed:\n%s", hidden, out.String())
		}
	}
	if !strings.Contains(out.String(), "gitlab.token = ••••  (TORYO_GITLAB_TOKEN)") {
		t.Errorf("the masked token is not listed:\n%s", out.String())
	}
}

func TestTheListingSaysEveryValueAndItsOrigin(t *testing.T) {
	t.Parallel()
	text := "gitlab:\n  projects: [a/b, c/d]\n  bot_name: b\ncommand_executor:\n  environments:\n    zig: zig:1\n"
	config, report := parse("toryo.yaml", []byte(text), []string{"TORYO_LLM_TEMPERATURE=0.25"}, map[string]string{"data_dir": "/srv/a b"})
	var out strings.Builder
	if err := report.Print(&out, config); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"language = auto  (default)",
		"data_dir = /srv/a b  (flag)",
		"gitlab.projects = a/b,c/d  (toryo.yaml:2)",
		`github.owner = ""  (default)`,
		"llm.temperature = 0.25  (TORYO_LLM_TEMPERATURE)",
		"command_executor.environments.zig = zig:1  (toryo.yaml:6)",
		"comment_detection.check_interval = 1  (default)",
	} {
		if !strings.Contains(out.String(), line+"\n") {
			t.Errorf("%q is missing in\n%s", line, out.String())
		}
	}
	if got, want := strings.Count(out.String(), "\n"), len(keys().keys)+1; got != want {
		t.Errorf("%d lines, want %d", got, want)
	}
}

func TestConfiguredForges(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*Config)
		want   []task.Forge
	}{
		"none":             {func(*Config) {}, nil},
		"labels alone":     {func(c *Config) { c.GitHub.Bot = "x"; c.Gitea.BotName = "b" }, nil},
		"owner":            {func(c *Config) { c.GitHub.Owner = "o" }, []task.Forge{task.GitHub}},
		"token":            {func(c *Config) { c.GitLab.Token = "t" }, []task.Forge{task.GitLab}},
		"projects and url": {func(c *Config) { c.GitLab.Projects = []string{"a/b"}; c.Gitea.URL = "http://g" }, []task.Forge{task.GitLab, task.Gitea}},
		"an App":           {func(c *Config) { c.GitHub.AppID = 7 }, []task.Forge{task.GitHub}},
		"webhooks":         {func(c *Config) { c.Gitea.WebhookSecretFile = "f" }, []task.Forge{task.Gitea}},
		"another url":      {func(c *Config) { c.GitHub.URL = "https://ghe" }, []task.Forge{task.GitHub}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := Default()
			test.change(&config)
			if diff := cmp.Diff(test.want, config.ConfiguredForges()); diff != "" {
				t.Errorf("forges (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLabelNames(t *testing.T) {
	t.Parallel()
	config, _ := parse("f", []byte("gitea:\n  stopped_label: halted\n"), nil, nil)
	for _, forge := range task.Forges {
		want := task.DefaultLabelNames()
		if forge == task.Gitea {
			want[task.StoppedLabel] = "halted"
		}
		if diff := cmp.Diff(want, config.LabelNames(forge)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", forge, diff)
		}
	}
}

func TestSecretsAreAllThereAndTheDatabasesPasswordToo(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"postgres://me:pass%20word@host/db",
		"postgres://host/db?password=pass+word",
		"host=h password='pass word' dbname=d",
	} {
		config := Default()
		config.GitHub.Token, config.LLM.APIKey, config.Database.URL = "token-of-github", "key-of-model", redact.Secret(url)
		want := []redact.Secret{redact.Secret(url), "token-of-github", "key-of-model", "pass word"}
		if diff := cmp.Diff(want, config.Secrets()); diff != "" {
			t.Errorf("secrets (-want +got):\n%s", diff)
		}
		if got := config.Redactor().String("x pass word y key-of-model"); got != "x •••• y ••••" {
			t.Errorf("redacted to %q", got)
		}
	}
}

func TestContextsPath(t *testing.T) {
	t.Parallel()
	config := Config{DataDir: "/srv/toryo", ContextsDir: "contexts"}
	if got := config.ContextsPath(); got != "/srv/toryo/contexts" {
		t.Errorf("relative: %s", got)
	}
	config.ContextsDir = "/elsewhere"
	if got := config.ContextsPath(); got != "/elsewhere" {
		t.Errorf("absolute: %s", got)
	}
}

// What programs are given by name comes out of them again.
func TestValuesOfPassedVariablesAreSecrets(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "toryo.yaml")
	text := "executors:\n  variables: [GEMINI_API_KEY]\nmcp_servers:\n  tickets: {command: [tickets], environment: [TICKETS_TOKEN]}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	loaded, _ := Load(file, []string{"GEMINI_API_KEY=first-secret-value", "TICKETS_TOKEN=second-secret-value", "OTHER=third-ordinary-value"}, nil)
	got := loaded.Redactor().String("first-secret-value second-secret-value third-ordinary-value Zmlyc3Qtc2VjcmV0LXZhbHVl")
	if want := "•••• •••• third-ordinary-value ••••"; got != want {
		t.Errorf("it is told as %q, want %q", got, want)
	}
}

func TestPollingWithWebhooksIsNotMoreOften(t *testing.T) {
	t.Parallel()
	_, report := Load("", []string{"TORYO_POLLING_SHORTEST=10m", "TORYO_POLLING_LONGEST=5m"}, nil)
	want := []string{
		"TORYO_POLLING_LONGEST: polling.longest: with trusted webhooks forges would be asked more often than without: longest is 5m0s and shortest 10m0s; raise longest, or lower shortest",
	}
	if diff := cmp.Diff(want, lines(report.Problems)); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	_, report = Load("", []string{"TORYO_POLLING_LONGEST_AFTER=0", "TORYO_POLLING_TRUST_FOR=1s", "TORYO_POLLING_WEBHOOK_GRACE=2h"}, nil)
	if len(report.Problems) != 3 {
		t.Errorf("values out of bounds: %v", lines(report.Problems))
	}
}

// Where the data is does not depend on the folder that a command is called in.
func TestADataDirectoryCountsFromItsFile(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		file, text string
		environ    []string
		flag, want string
	}{
		{file: "/etc/toryo/toryo.yaml", text: "data_dir: kept", want: "/etc/toryo/kept"},
		{file: "/etc/toryo/toryo.yaml", text: "data_dir: /var/lib/toryo", want: "/var/lib/toryo"},
		{file: "toryo.yaml", text: "data_dir: kept", want: "kept"},
		{file: "/etc/toryo/toryo.yaml", text: "language: en", want: "/var/lib/toryo"},
		{file: "/etc/toryo/agent.yaml", text: "language: en", want: "data"},
		{file: "/etc/toryo/toryo.yaml", text: "data_dir: kept", environ: []string{"TORYO_DATA_DIR=here"}, want: "here"},
		{file: "/etc/toryo/toryo.yaml", text: "data_dir: kept", flag: "there", want: "there"},
	} {
		overrides := map[string]string{}
		if test.flag != "" {
			overrides["data_dir"] = test.flag
		}
		if c, _ := parse(test.file, []byte(test.text+"\n"), test.environ, overrides); c.DataDir != test.want {
			t.Errorf("%+v gives %q", test, c.DataDir)
		}
	}
}

// The token of the command line is no key, and no misspelt one either.
func TestTheTokenOfCommandsIsNoUnknownVariable(t *testing.T) {
	t.Parallel()
	if _, report := parse("toryo.yaml", nil, []string{TokenVariable + "=x"}, nil); len(report.Warnings) != 0 {
		t.Error(report.Warnings)
	}
}

// The reference has every key, with its default and its variable.
func TestTheReferenceHasEveryKey(t *testing.T) {
	t.Parallel()
	text := Reference()
	for _, k := range keys().keys {
		if k.kind != secretKind && k.in.entries == nil && !strings.Contains(text, "  "+k.path) {
			t.Errorf("%s is missing", k.path)
		}
		if !strings.Contains(text, "["+k.variable()+"]") {
			t.Errorf("%s is missing", k.variable())
		}
	}
	for _, line := range []string{"  data_dir: data  [TORYO_DATA_DIR]\n", "  github.token (secret)  [TORYO_GITHUB_TOKEN]\n", "  server.addr: "} {
		if !strings.Contains(text, line) {
			t.Errorf("%q is missing in\n%s", line, text)
		}
	}
}

// A command that needs no secrets does without the files of secrets that cannot be opened, and
// without nothing else: a file with certificates that is left out would be looked for elsewhere.
func TestWithoutSecrets(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	load := func(text string) (Config, Report) {
		return parse(filepath.Join(folder, "toryo.yaml"), []byte(text+"\n"), nil, nil)
	}
	write := func(name string) {
		if err := os.WriteFile(filepath.Join(folder, name), []byte("\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("tls.crt")
	write("empty")
	for text, test := range map[string]struct{ problem, database string }{
		"gitea: {url: 'https://git.example', owner: team, bot_name: toryo, token_file: gone}":                     {},
		"llm: {provider: openai, model: x, api_key_file: gone}":                                                   {},
		"server: {tls_cert_file: tls.crt, tls_key_file: gone}":                                                    {},
		"database: {driver: postgres, url_file: gone}":                                                            {database: "database.url_file: "},
		"agent: {ca_file: gone}":                                                                                  {problem: "agent.ca_file: "},
		"server: {tls_cert_file: gone, tls_key_file: gone}":                                                       {problem: "server.tls_cert_file: "},
		"llm: {provider: openai, model: x, api_key_file: empty}":                                                  {problem: "llm.api_key_file: "},
		"log: {level: loud}\ngitea: {url: 'https://git.example', owner: team, bot_name: toryo, token_file: gone}": {problem: "log.level: "},
	} {
		c, report := load(text)
		if len(report.Problems) == 0 {
			t.Errorf("%s: nothing is wrong", text)
		}
		rest, database := report.WithoutSecrets()
		for _, got := range []struct {
			err  error
			want string
		}{{rest.Err(), test.problem}, {database, test.database}} {
			if (got.err != nil) != (got.want != "") || got.err != nil && !strings.Contains(got.err.Error(), got.want) {
				t.Errorf("%s: %v, want %q", text, got.err, got.want)
			}
		}
		if c.Agent.CAFile != "" && c.Agent.CAFile != filepath.Join(folder, "gone") {
			t.Errorf("the certificates are looked for in %s", c.Agent.CAFile)
		}
	}
}
