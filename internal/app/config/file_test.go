package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toryo-dev/toryo/internal/task"
)

// lines shows a list of problems as people see it.
func lines(problems []Problem) []string {
	var all []string
	for _, p := range problems {
		all = append(all, p.String())
	}
	return all
}

func TestEveryKindOfProblemIsFoundAtItsPlace(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"misspelt key": {
			"comment_detection:\n  check_intervall: 1\n",
			[]string{"toryo.yaml:2:3: comment_detection.check_intervall: unknown key; did you mean check_interval?"},
		},
		"comments that are not read": {
			"comment_detection: {review_comments: false}\nreview: {fix_up_on: [mentions, review_comments]}\n",
			[]string{"toryo.yaml:2:10: review.fix_up_on: comments on lines lead to changes, but are not read; remove review_comments from review.fix_up_on, or set comment_detection.review_comments to true"},
		},
		"a provider without its rest": {
			"oidc: {issuer: 'https://id.example.org'}\n",
			[]string{"toryo.yaml:1:8: oidc.issuer: a provider is set, but not the name that Toryo has there; set it"},
		},
		"a provider that leads elsewhere": {
			"oidc: {issuer: 'https://id.example.org', client_id: toryo, redirect_url: 'https://toryo.example.org/', users: ['*']}\n",
			[]string{"toryo.yaml:1:60: oidc.redirect_url: browsers would not come back to the pages; give the address of the pages with /signin/oidc/callback behind it"},
		},
		"a provider that lets nobody in": {
			"oidc: {issuer: 'https://id.example.org', client_id: toryo, redirect_url: 'https://toryo.example.org/signin/oidc/callback'}\n",
			[]string{"toryo.yaml:1:8: oidc.issuer: nobody could sign in: neither groups nor users are named; name groups, or users; users: ['*'] lets everyone in"},
		},
		"people without a provider": {
			"oidc:\n  users: [alice]\n",
			[]string{"toryo.yaml:2:3: oidc.users: signing in elsewhere is described, but the provider is missing; set oidc.issuer, or remove the rest"},
		},
		"misspelt section": {
			"# why\n\ncomment_detectoin:\n  enabled: true\n",
			[]string{"toryo.yaml:3:1: comment_detectoin: unknown key; did you mean comment_detection?"},
		},
		"swapped letters and a dash": {
			"comment_detection:\n  check-intevral: 1\n",
			[]string{"toryo.yaml:2:3: comment_detection.check-intevral: unknown key; did you mean check_interval?"},
		},
		"key of another section": {
			"gitlab:\n  owner: me\n",
			[]string{"toryo.yaml:2:3: gitlab.owner: unknown key; it belongs in gitea or in github"},
		},
		"key of a section at the top": {
			"paused_task_expiry_days: 3\n",
			[]string{"toryo.yaml:1:1: paused_task_expiry_days: unknown key; it belongs in pause_resume"},
		},
		"top key in a section": {
			"github:\n  language: ja\n",
			[]string{"toryo.yaml:2:3: github.language: unknown key; it belongs at the top level or in notifications.webhooks.NAME"},
		},
		"misspelt key of another section": {
			"log:\n  otlp_endpiont: x\n",
			[]string{"toryo.yaml:2:3: log.otlp_endpiont: unknown key; did you mean otlp_endpoint? It belongs in telemetry"},
		},
		"nothing like it": {
			"log:\n  zzz: 1\n",
			[]string{"toryo.yaml:2:3: log.zzz: unknown key; known here: level, format"},
		},
		"text for a switch": {
			"task_stop:\n  enabled: yes\n",
			[]string{`toryo.yaml:2:12: task_stop.enabled: "yes" is not true or false; use true or false`},
		},
		"quoted switch": {
			"task_stop:\n  enabled: \"true\"\n",
			[]string{"toryo.yaml:2:12: task_stop.enabled: true or false is expected here, not text; remove the quotes"},
		},
		"text for a number": {
			"comment_detection:\n  check_interval: often\n",
			[]string{`toryo.yaml:2:19: comment_detection.check_interval: "often" is not a whole number; write it in plain digits, without quotes`},
		},
		"fraction for a whole number": {
			"comment_detection: {check_interval: 1.5}\n",
			[]string{`toryo.yaml:1:37: comment_detection.check_interval: "1.5" is not a whole number; write it in plain digits, without quotes`},
		},
		"octal or not": {
			"pause_resume:\n  paused_task_expiry_days: 010\n",
			[]string{`toryo.yaml:2:28: pause_resume.paused_task_expiry_days: "010" is not a whole number; write it in plain digits, without quotes`},
		},
		"too small": {
			"comment_detection:\n  check_interval: 0\n",
			[]string{"toryo.yaml:2:19: comment_detection.check_interval: 0 is too small; the least is 1"},
		},
		"too large": {
			"llm:\n  temperature: 2.5\n",
			[]string{"toryo.yaml:2:16: llm.temperature: 2.5 is too large; the most is 2"},
		},
		"not a finite number": {
			"llm:\n  temperature: .nan\n  prices:\n    input: nan\n",
			[]string{
				`toryo.yaml:2:16: llm.temperature: ".nan" is not a number; write it like 0.5, without quotes`,
				`toryo.yaml:4:12: llm.prices.input: "nan" is not a number; write it like 0.5, without quotes`,
			},
		},
		"not one of the words": {
			"language: fr\n",
			[]string{`toryo.yaml:1:11: language: "fr" is not allowed; use auto, ja or en`},
		},
		"value for a section": {
			"github: ghp_0123456789abcdef\n",
			[]string{"toryo.yaml:1:9: github: keys are expected here, not a single value; write key: value lines"},
		},
		"list for a section": {
			"github:\n  - owner: me\n",
			[]string{"toryo.yaml:2:3: github: keys are expected here, not a list; write key: value lines"},
		},
		"section for a value": {
			"language:\n  name: ja\n",
			[]string{"toryo.yaml:2:3: language: one value is expected here, not a section; write language: and the value"},
		},
		"value for a list": {
			"gitlab:\n  projects: a/b\n",
			[]string{"toryo.yaml:2:13: gitlab.projects: a list is expected here, not a single value; write it as a list: [one, two]"},
		},
		"bad entries of a list": {
			"gitlab:\n  bot_name: b\n  projects:\n    - a/b\n    - alone\n",
			[]string{`toryo.yaml:5:7: gitlab.projects: "alone" is not a project of the form group/name; write it like group/project`},
		},
		"entry listed twice": {
			"gitlab:\n  bot_name: b\n  projects: [a/b, c/d, a/b]\n",
			[]string{`toryo.yaml:3:24: gitlab.projects: "a/b" is listed twice; remove one of them`},
		},
		"section in a list": {
			"gitlab:\n  projects:\n    - name: a/b\n",
			[]string{"toryo.yaml:3:7: gitlab.projects: an entry of the list is a section; write one value for each entry"},
		},
		"not a web address": {
			"telemetry:\n  otlp_endpoint: localhost:4318\n",
			[]string{`toryo.yaml:2:18: telemetry.otlp_endpoint: "localhost:4318" does not begin with http:// or https://; write it like https://host or https://host:port/path`},
		},
		"address without a host": {
			"telemetry:\n  otlp_endpoint: http://\n",
			[]string{`toryo.yaml:2:18: telemetry.otlp_endpoint: "http://" has no host; write it like https://host or https://host:port/path`},
		},
		"password in an address is not repeated": {
			"llm:\n  base_url: https://me:hunter2@host\n",
			[]string{"toryo.yaml:2:13: llm.base_url: the URL has a user name or password in it; give the credential as a secret of its own"},
		},
		"public address with a path": {
			"server:\n  public_url: https://host/toryo\n",
			[]string{`toryo.yaml:2:15: server.public_url: "https://host/toryo" has a path, and the server answers at the top only; write it like https://host or https://host:port`},
		},
		"public address without a scheme": {
			"server:\n  public_url: host:8750\n",
			[]string{`toryo.yaml:2:15: server.public_url: "host:8750" does not begin with http:// or https://; write it like https://host or https://host:port/path`},
		},
		"address without a port": {
			"server:\n  addr: localhost\n",
			[]string{`toryo.yaml:2:9: server.addr: "localhost" is not an address of the form host:port; write it like 127.0.0.1:8750`},
		},
		"port out of range": {
			"server:\n  addr: :70000\n",
			[]string{`toryo.yaml:2:9: server.addr: ":70000" has no port between 0 and 65535; write it like 127.0.0.1:8750`},
		},
		"key given twice": {
			"github:\n  bot_label: a\n  url: https://h\n  bot_label: b\n  owner: o\n  bot_name: n\n",
			[]string{"toryo.yaml:4:3: github.bot_label: the key is already on line 2; remove one of the two"},
		},
		"section given twice": {
			"log:\n  level: info\nlog:\n  level: debug\n",
			[]string{"toryo.yaml:3:1: log: the key is already on line 1; remove one of the two"},
		},
		"empty label": {
			"github:\n  done_label: ''\n",
			[]string{"toryo.yaml:2:15: github.done_label: the label is empty; remove the line to use the default"},
		},
		"two states with one label": {
			"gitea:\n  done_label: Finished\n  failed_label: finished\n",
			[]string{`toryo.yaml:3:3: gitea.failed_label: done_label and failed_label have the same text "finished"; give every state a label of its own`},
		},
		"label of another state by default": {
			"gitlab:\n  bot_label: coding agent done\n",
			[]string{`toryo.yaml:2:3: gitlab.bot_label: bot_label and done_label have the same text "coding agent done"; give every state a label of its own`},
		},
		"comma in a label of GitLab": {
			"gitlab:\n  bot_label: a, b\ngithub:\n  bot_label: a, b\n",
			[]string{"toryo.yaml:2:3: gitlab.bot_label: GitLab does not allow a comma in a label; remove the comma"},
		},
		"bot with an @": {
			"github:\n  bot_name: '@bot'\n",
			[]string{`toryo.yaml:2:13: github.bot_name: "@bot" begins with @; write it without the @`},
		},
		"postgres without an address": {
			"database:\n  driver: postgres\n",
			[]string{"toryo.yaml:2:3: database.driver: postgres needs the URL of the database; set TORYO_DATABASE_URL or database.url_file"},
		},
		"misspelt driver is one problem": {
			"database:\n  driver: postgress\n",
			[]string{`toryo.yaml:2:11: database.driver: "postgress" is not allowed; use sqlite or postgres`},
		},
		"unknown default environment": {
			"command_executor:\n  default_environment: rust\n  environments:\n    zig: me/zig:1\n",
			[]string{`toryo.yaml:2:3: command_executor.default_environment: there is no environment "rust"; use python, miniforge, node, java, go or zig`},
		},
		"unknown allowed environment": {
			"command_executor:\n  environments: {fortran: \"gcc:14\"}\n  allowed_environments: [python, fortran, cobol]\n",
			[]string{`toryo.yaml:3:3: command_executor.allowed_environments: there is no environment "cobol"; use some of python, miniforge, node, java, go, rust, ruby, php, dotnet, elixir, erlang, deno, swift, scala, clojure, haskell, r, perl, dart, julia, crystal, ocaml, lua, nim, zig, c or fortran`},
		},
		"default environment that is not allowed": {
			"command_executor:\n  allowed_environments: [node, rust]\n",
			[]string{`toryo.yaml:2:3: command_executor.allowed_environments: the default environment "python" is not allowed; add it, or set default_environment to node or rust`},
		},
		"bad name of an environment": {
			"command_executor:\n  environments:\n    C++: gcc:14\n",
			[]string{"toryo.yaml:3:5: command_executor.environments.C++: this is not a name for an environment; begin with a small letter and go on with small letters, digits, _ and -"},
		},
		"environment without an image": {
			"command_executor:\n  environments:\n    python: \"\"\n",
			[]string{"toryo.yaml:3:13: command_executor.environments.python: the value is empty; give it a value or remove the line"},
		},
		"provider without a model": {
			"llm:\n  provider: openai\n  base_url: http://127.0.0.1:1/v1\n",
			[]string{"toryo.yaml:2:3: llm.provider: openai needs the name of a model; name the model"},
		},
		"model without a provider": {
			"llm:\n  model: m\n",
			[]string{"toryo.yaml:2:3: llm.model: a model is named, but no provider; set it to anthropic, openai, gemini, azure, bedrock, vertex or script"},
		},
		"no room for the question": {
			"llm:\n  context_length: 4096\n  max_tokens: 8192\n",
			[]string{"toryo.yaml:3:3: llm.max_tokens: max_tokens (8192) must be less than context_length (4096); leave room for what is sent"},
		},
		"half a forge": {
			"language: ja\ngithub:\n  owner: me\n",
			[]string{"toryo.yaml:2:1: github.bot_name: github is configured (toryo.yaml:3), but this key is missing; set it, or remove what else is set for github"},
		},
		"duration without a unit": {
			"llm:\n  timeout: 30\n",
			[]string{`toryo.yaml:2:12: llm.timeout: "30" is not a duration; write it like 30s, 5m or 2h`},
		},
		"duration too short": {
			"llm:\n  timeout: \"10ms\"\n",
			[]string{"toryo.yaml:2:12: llm.timeout: 10ms is too small; the least is 1s"},
		},
		"size with a unit of a thousand": {
			"sandbox:\n  memory: 4GB\n",
			[]string{`toryo.yaml:2:11: sandbox.memory: "4GB" has a unit that is not known here; the units are B, KiB, MiB, GiB and TiB`},
		},
		"size too small": {
			"sandbox:\n  memory: 4\n  network: {hosts: ['*']}\n",
			[]string{
				"toryo.yaml:2:11: sandbox.memory: 4 is too small; the least is 64MiB",
				`toryo.yaml:3:21: sandbox.network.hosts: "*" is not the name of a host; write it like example.com, *.example.com or example.com:8443`,
			},
		},
		"engine that is not an address": {
			"sandbox:\n  container_engine: /var/run/docker.sock\n",
			[]string{`toryo.yaml:2:21: sandbox.container_engine: "/var/run/docker.sock" is not an address of a container engine; write it like unix:///var/run/docker.sock or tcp://host:2376`},
		},
		"command that is not a list": {
			"executors:\n  development: gemini -p\n  review: ['', x]\n",
			[]string{
				"toryo.yaml:2:16: executors.development: a list is expected here, not a single value; write it as a list: [one, two]",
				"toryo.yaml:3:12: executors.review: the command has no program; begin with the name of a program",
			},
		},
		"App and a token that cannot be read": {
			"github:\n  owner: o\n  bot_name: b\n  token_file: t\n  app_id: 1\n",
			[]string{`toryo.yaml:4:3: github.token_file: "t": the file cannot be read: no such file or directory; check the path`},
		},
		"App without its number": {
			"github:\n  owner: o\n  bot_name: b\n  app_installation_id: 1\n",
			[]string{"toryo.yaml:4:3: github.app_installation_id: a GitHub App is described, but not named; set github.app_id"},
		},
		"script of another provider": {
			"llm:\n  provider: openai\n  base_url: http://h\n  model: m\n  script: /dev/null\n",
			[]string{"toryo.yaml:5:3: llm.script: only the provider script has this; set provider: script, or remove it"},
		},
		"scripted model without a script": {
			"llm:\n  provider: script\n",
			[]string{"toryo.yaml:2:3: llm.provider: the scripted model needs a script; name its file"},
		},
		"script that is not there": {
			"llm:\n  provider: script\n  script: no/such.yaml\n",
			[]string{`toryo.yaml:3:3: llm.script: "no/such.yaml": the file cannot be read: no such file or directory; check the path`},
		},
		"API of another provider": {
			"llm:\n  provider: anthropic\n  base_url: http://h\n  model: m\n  api: chat\n",
			[]string{"toryo.yaml:5:3: llm.api: only the provider openai has this; set provider: openai, or remove it"},
		},
		"review label of a state": {
			"review:\n  label: Coding agent\n",
			[]string{`toryo.yaml:2:3: review.label: "Coding agent" is also github.bot_label; choose another label`},
		},
		"approval label of a state": {
			"planning:\n  approval_label: Coding agent\n",
			[]string{`toryo.yaml:2:3: planning.approval_label: "Coding agent" is also github.bot_label; choose another label`},
		},
		"approval label of reviews": {
			"planning:\n  approval_label: Needs-Review\n",
			[]string{`toryo.yaml:2:3: planning.approval_label: "Needs-Review" is also review.label; choose another label`},
		},
		"approval without plans": {
			"planning:\n  approval: label\nexecutors:\n  development: [gemini]\n",
			[]string{"toryo.yaml:2:3: planning.approval: plans have to be approved, but a program of your own for development tasks makes none; set planning.approval to never, or remove the command"},
		},
		"approval by someone": {
			"planning:\n  approval: sometimes\n",
			[]string{`toryo.yaml:2:13: planning.approval: "sometimes" is not allowed; use never, label or always`},
		},
		"line break in a value": {
			"github:\n  bot_label: |\n    two\n    lines\n",
			[]string{"toryo.yaml:2:14: github.bot_label: the value has a line break or another control character; write it on one line"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, report := parse("toryo.yaml", []byte(test.text), nil, nil)
			if diff := cmp.Diff(test.want, lines(report.Problems)); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAllProblemsAreFoundInOneRunInTheOrderOfTheLines(t *testing.T) {
	t.Parallel()
	text := `langage: ja
comment_detection:
  enabled: maybe
  check_interval: -1
database:
  driver: postgres
github:
  token: ghp_0123456789abcdef
  done_label: coding agent
log: {level: loud, fromat: json}
`
	_, report := parse("toryo.yaml", []byte(text), []string{"TORYO_SERVER_ADDR=nowhere"}, map[string]string{"log.format": "xml"})
	want := []string{
		"toryo.yaml:1:1: langage: unknown key; did you mean language?",
		`toryo.yaml:3:12: comment_detection.enabled: "maybe" is not true or false; use true or false`,
		"toryo.yaml:4:19: comment_detection.check_interval: -1 is too small; the least is 1",
		"toryo.yaml:6:3: database.driver: postgres needs the URL of the database; set TORYO_DATABASE_URL or database.url_file",
		"toryo.yaml:8:3: github.token: a secret must not stand in the configuration file; use token_file or the variable TORYO_GITHUB_TOKEN",
		`toryo.yaml:9:3: github.done_label: bot_label and done_label have the same text "coding agent"; give every state a label of its own`,
		`toryo.yaml:10:14: log.level: "loud" is not allowed; use debug, info, warn or error`,
		"toryo.yaml:10:20: log.fromat: unknown key; did you mean format?",
		`TORYO_SERVER_ADDR: server.addr: "nowhere" is not an address of the form host:port; write it like 127.0.0.1:8750`,
		`command line: log.format: "xml" is not allowed; use text or json`,
	}
	if diff := cmp.Diff(want, lines(report.Problems)); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}

	err := report.Err()
	if task.CodeOf(err) != task.BadConfig {
		t.Errorf("the error has the code %q", task.CodeOf(err))
	}
	wantErr := `toryo.yaml:1:1: langage: unknown key; did you mean language?; "toryo config check toryo.yaml" shows this and 9 more`
	if err.Error() != wantErr {
		t.Errorf("the error is\n%s, want\n%s", err, wantErr)
	}
}

func TestNoProblemsAreNoError(t *testing.T) {
	t.Parallel()
	if _, report := parse("toryo.yaml", nil, nil, nil); report.Err() != nil {
		t.Errorf("an empty file is an error: %v", report.Err())
	}
}

func TestOddFilesHaveDefinedResults(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		text     string
		language string // "" for the default
		want     []string
	}{
		"empty":               {text: ""},
		"comments only":       {text: "# nothing\n\n# at all\n"},
		"empty document":      {text: "---\n"},
		"byte order mark":     {text: "\ufefflanguage: ja\n", language: "ja"},
		"Windows line ends":   {text: "# x\r\nlanguage: ja\r\nlog:\r\n  lvel: x\r\n", language: "ja", want: []string{"f:4:3: log.lvel: unknown key; did you mean level?"}},
		"old Mac line ends":   {text: "# x\rlanguage: ja\rlog:\r  lvel: x\r", language: "ja", want: []string{"f:4:3: log.lvel: unknown key; did you mean level?"}},
		"no last line end":    {text: "language: ja", language: "ja"},
		"flow style":          {text: "{language: ja, log: {level: debug}}", language: "ja"},
		"null is not set":     {text: "language:\nserver: ~\nlog:\n  level: null\n"},
		"one document marked": {text: "%YAML 1.2\n---\nlanguage: ja\n...\n", language: "ja"},
		"two documents":       {text: "language: ja\n---\nlanguage: en\n", want: []string{"f:3:1: the file has more than one YAML document; remove the --- line and what follows it"}},
		"tab":                 {text: "log:\n\tlevel: info\n", want: []string{"f:2:1: a tab is not allowed here; indent with spaces"}},
		"scalar":              {text: "hello", want: []string{"f:1:1: keys are expected here, not a single value; write key: value lines"}},
		"list":                {text: "- a\n- b\n", want: []string{"f:1:1: keys are expected here, not a list; write key: value lines"}},
		"open quote":          {text: "language: \"ja\nlog:\n", want: []string{"f:1:11: broken YAML: could not find end character of double-quoted text; fix the YAML there or just above"}},
		"bad indentation":     {text: "log:\n  level: info\n format: text\n", want: []string{"f:3:2: broken YAML: value is not allowed in this context; fix the YAML there or just above"}},
		"open bracket":        {text: "gitlab:\n  projects: [a/b\nlog:\n", want: []string{"f:3:1: broken YAML: ',' or ']' must be specified; fix the YAML there or just above"}},
		"binary":              {text: "a: 1\nb: \x7fELF\x00\x01", want: []string{"f:2:8: the file is not UTF-8 text; save it as UTF-8"}},
		"Latin-1":             {text: "# caf\xe9\n", want: []string{"f:1:6: the file is not UTF-8 text; save it as UTF-8"}},
		"UTF-16":              {text: "\xff\xfel\x00a\x00", want: []string{"f:1:1: the file is not UTF-8 text; save it as UTF-8"}},
		"tag":                 {text: "language: !!str ja\n", want: []string{"f:1:11: language: tags such as !!str are not supported; remove the tag"}},
		"key that is a list":  {text: "? [a]\n: b\n", want: []string{"f:2:1: broken YAML: found an invalid key for this map; fix the YAML there or just above"}},
		"number as text":      {text: "llm:\n  provider: openai\n  base_url: http://h\n  model: 4\n"},
		"ten megabytes":       {text: strings.Repeat("# x\n", 10<<20/4), want: []string{"f: the file is larger than 256 KiB; a configuration file has a few hundred lines: is this the right file?"}},
		"thousands of keys":   {text: strings.Repeat("a: b\n", 20_000), want: []string{"f:3334:2: the file has too many keys and values; a configuration file has a few hundred lines: is this the right file?"}},
		"deep brackets":       {text: strings.Repeat("[", 200_000), want: []string{"f:1:51: the YAML is nested too deeply; write it in plain key: value lines"}},
		"deep dashes":         {text: strings.Repeat("- ", 100_000), want: []string{"f:1:101: the YAML is nested too deeply; write it in plain key: value lines"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config, report := parse("f", []byte(test.text), nil, nil)
			if diff := cmp.Diff(test.want, lines(report.Problems)); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
			want := test.language
			if want == "" {
				want = "auto"
			}
			if config.Language != want {
				t.Errorf("language is %q, want %q", config.Language, want)
			}
		})
	}
}

func TestAnchorsAliasesAndMerges(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		text string
		want []string
		bot  string // gitea.bot_label
	}{
		"alias of a value": {
			text: "github:\n  bot_label: &l robot\ngitea:\n  bot_label: *l\n",
			bot:  "robot",
		},
		"merge of a section, own keys first": {
			text: "github: &g\n  bot_label: robot\n  done_label: ready\ngitea:\n  <<: *g\n  bot_label: own\n",
			bot:  "own",
		},
		"merge of several, the first wins": {
			text: "github: &a\n  bot_label: one\ngitlab: &b\n  bot_label: two\ngitea:\n  <<: [*a, *b]\n",
			bot:  "one",
		},
		"the nearest anchor above counts": {
			text: "github:\n  bot_label: &l one\ngitlab:\n  bot_label: &l two\ngitea:\n  bot_label: *l\n",
			bot:  "two",
		},
		"alias without an anchor": {
			text: "gitea:\n  bot_label: *l\n",
			want: []string{"f:2:14: gitea.bot_label: the alias has no anchor; define it with & above, or write the value out"},
			bot:  "coding agent",
		},
		"anchor below its alias": {
			text: "gitea:\n  bot_label: *l\ngithub:\n  bot_label: &l robot\n",
			want: []string{"f:2:14: gitea.bot_label: the alias has no anchor; define it with & above, or write the value out"},
			bot:  "coding agent",
		},
		"merged key that does not belong": {
			text: "github: &g\n  owner: me\n  bot_name: bot\ngitlab:\n  <<: *g\n",
			want: []string{"f:2:3: gitlab.owner: unknown key; it belongs in gitea or in github"},
			bot:  "coding agent",
		},
		"merge of a value": {
			text: "github:\n  bot_label: &l robot\ngitea:\n  <<: *l\n",
			want: []string{"f:4:7: gitea: <<: needs the alias of a section; merge a section, as in <<: *name"},
			bot:  "coding agent",
		},
		"merge of itself": {
			text: "gitea: &g\n  <<: *g\n  bot_label: robot\n",
			want: []string{"f:2:3: gitea: the aliases unfold to too much; write the values out"},
			bot:  "robot",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config, report := parse("f", []byte(test.text), nil, nil)
			if diff := cmp.Diff(test.want, lines(report.Problems)); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
			if config.Gitea.Bot != test.bot {
				t.Errorf("gitea.bot_label is %q, want %q", config.Gitea.Bot, test.bot)
			}
		})
	}
}

func TestAliasesCannotUnfoldWithoutEnd(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	text.WriteString("a0: &a0 {bot_label: x}\n")
	for i := 1; i < 20; i++ {
		before, now := string(rune('a'+i-1)), string(rune('a'+i))
		if i == 1 {
			before = "a0"
		}
		text.WriteString(now + ": &" + now + " {<<: [" + strings.Repeat("*"+before+", ", 9) + "*" + before + "]}\n")
	}
	text.WriteString("github: {<<: *t}\n")
	_, report := parse("f", []byte(text.String()), nil, nil)
	found := false
	for _, p := range report.Problems {
		found = found || p.Key == "github" && strings.Contains(p.Message, "unfold to too much")
	}
	if !found || len(report.Problems) > 100 {
		t.Errorf("%d problems, the one about aliases among them: %v", len(report.Problems), found)
	}
}

func TestFilesThatCannotBeRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, test := range map[string]struct{ path, want string }{
		"missing": {
			filepath.Join(dir, "none.yaml"),
			": the file cannot be read: no such file or directory; check the path, or let toryo config init write one",
		},
		"folder": {dir, ": this is a folder; name a file in it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// What else is wrong cannot be told when the file is not known.
			_, report := Load(test.path, []string{"TORYO_GITHUB_TOKEN=0123456789"}, nil)
			if diff := cmp.Diff([]string{test.path + test.want}, lines(report.Problems)); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLoadReadsTheFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "toryo.yaml")
	text := `language: ja
gitlab:
  url: https://git.example.com/gitlab
  projects: [a/b, 'c/d/e']
  bot_name: bot
llm:
  provider: openai
  model: m-1
  temperature: 0
  prices: {input: 2.5, output: 1e1}
command_executor:
  environments:
    go: registry.example.com:5000/go@sha256:0011
    rust: rust:1
  default_environment: rust
comment_detection: {enabled: FALSE, check_interval: 3}
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.Language = "ja"
	want.GitLab.URL, want.GitLab.Projects, want.GitLab.BotName = "https://git.example.com/gitlab", []string{"a/b", "c/d/e"}, "bot"
	want.LLM.Provider, want.LLM.Model, want.LLM.Temperature = "openai", "m-1", new(float64)
	want.LLM.Prices, want.LLM.OwnPrices = Prices{Input: 2.5, Output: 10}, true
	want.CommandExecutor.Environments["go"] = "registry.example.com:5000/go@sha256:0011"
	want.CommandExecutor.Environments["rust"] = "rust:1"
	want.CommandExecutor.DefaultEnvironment = "rust"
	want.CommentDetection = CommentDetection{Enabled: false, CheckInterval: 3, AcceptFrom: "write_or_author", ReviewComments: true}

	got, report := Load(path, nil, nil)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string(nil), lines(report.Problems)); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	wantWarnings := []string{
		path + ":2:1: gitlab.token: gitlab is configured (" + path + ":4), but there is no token; set TORYO_GITLAB_TOKEN or gitlab.token_file",
		path + ":6:1: llm.api_key: openai needs a key, and there is none; set TORYO_LLM_API_KEY, OPENAI_API_KEY or llm.api_key_file",
		path + `:8:3: llm.model: nothing is known of the model "m-1"; it is used with a context of 128000 tokens and answers of 8192; set context_length and max_tokens, and prices for a budget in money`,
	}
	if diff := cmp.Diff(wantWarnings, lines(report.Warnings)); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}
