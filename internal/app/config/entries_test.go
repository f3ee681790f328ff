package config

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toryo-dev/toryo/internal/redact"
)

func TestEntriesOfTheUsersOwn(t *testing.T) {
	t.Parallel()
	text := `
mcp_servers:
  tickets: &server
    command: [npx, -y, "a, b", -y, ""]
    environment: [TICKETS_URL, LANG]
    in_sandbox: false
  docs: {url: https://mcp.example.com/mcp, timeout: 5s}
roles:
  "team: front end": {}
  BACKENDCODER:
    description: Works on the services, and on nothing else.
    network: open
    prices: {input: 1.5}
  REVIEWER:
llm_overrides:
  REVIEWER: {temperature: 0, max_tokens: 100}
`
	want := Default()
	want.MCPServers = map[string]MCPServer{
		"tickets": {Command: Command{"npx", "-y", "a, b", "-y", ""}, Environment: []string{"TICKETS_URL", "LANG"}, Timeout: time.Minute},
		"docs":    {URL: "https://mcp.example.com/mcp", Timeout: 5 * time.Second, InSandbox: true},
	}
	price, cold, most := 1.5, 0.0, 100
	want.Roles = map[string]Role{
		"team: front end": {Order: 0},
		"BACKENDCODER":    {Order: 1, Description: "Works on the services, and on nothing else.", Network: "open", ModelOverride: ModelOverride{Prices: PricesOverride{Input: &price}}},
		"REVIEWER":        {Order: 2},
	}
	want.LLMOverrides = map[string]ModelOverride{"REVIEWER": {Temperature: &cold, MaxTokens: &most}}

	got, report := parse("toryo.yaml", []byte(text), nil, nil)
	if len(report.Problems)+len(report.Warnings) > 0 {
		t.Errorf("%v %v", lines(report.Problems), lines(report.Warnings))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"team: front end", "BACKENDCODER", "REVIEWER"}, got.RoleNames()); diff != "" {
		t.Errorf("roles (-want +got):\n%s", diff)
	}

	var out strings.Builder
	if err := report.Print(&out, got); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"mcp_servers.docs.timeout = 5s  (toryo.yaml:7)",
		"mcp_servers.docs.in_sandbox = true  (default)",
		"mcp_servers.tickets.environment = TICKETS_URL,LANG  (toryo.yaml:5)",
		"mcp_servers.tickets.timeout = 1m  (default)",
		"roles.BACKENDCODER.prices.input = 1.5  (toryo.yaml:13)",
		`roles."team: front end".network = ""  (default)`,
		"llm_overrides.REVIEWER.temperature = 0  (toryo.yaml:16)",
		`llm_overrides.REVIEWER.context_length = ""  (default)`,
	} {
		if !strings.Contains(out.String(), line+"\n") {
			t.Errorf("%q is missing in\n%s", line, out.String())
		}
	}
}

func TestProblemsInEntriesAreFoundAtTheirPlace(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"misspelt key": {
			"mcp_servers:\n  a:\n    comand: [x]\n    url: http://h\n",
			[]string{"toryo.yaml:3:5: mcp_servers.a.comand: unknown key; did you mean command?"},
		},
		"misspelt key of a section in an entry": {
			"llm_overrides:\n  planning:\n    prices:\n      ouput: 1\n",
			[]string{"toryo.yaml:4:7: llm_overrides.planning.prices.ouput: unknown key; did you mean output?"},
		},
		"key of an entry elsewhere": {
			"log:\n  in_sandbox: true\n",
			[]string{"toryo.yaml:2:3: log.in_sandbox: unknown key; it belongs in mcp_servers.NAME"},
		},
		"every problem of every entry": {
			"mcp_servers:\n  a:\n    command: [x]\n    timeout: soon\n    in_sandbox: maybe\n  b:\n    url: ftp://h\n    environment: [LANG, LANG]\n",
			[]string{
				`toryo.yaml:4:14: mcp_servers.a.timeout: "soon" is not a duration; write it like 30s, 5m or 2h`,
				`toryo.yaml:5:17: mcp_servers.a.in_sandbox: "maybe" is not true or false; use true or false`,
				`toryo.yaml:7:10: mcp_servers.b.url: "ftp://h" does not begin with http:// or https://; write it like https://host or https://host:port/path`,
				`toryo.yaml:8:25: mcp_servers.b.environment: "LANG" is listed twice; remove one of them`,
			},
		},
		"entry given twice": {
			"roles:\n  A: {network: none}\n  A: {network: open}\n",
			[]string{"toryo.yaml:3:3: roles.A: the key is already on line 2; remove one of the two"},
		},
		"entry that is not a section": {
			"mcp_servers:\n  a: npx\n",
			[]string{"toryo.yaml:2:6: mcp_servers.a: keys are expected here, not a single value; write key: value lines"},
		},
		"list of entries": {
			"mcp_servers:\n  - command: [x]\n",
			[]string{"toryo.yaml:2:3: mcp_servers: keys are expected here, not a list; write key: value lines"},
		},
		"bad names": {
			"mcp_servers:\n  My Server: {url: http://h}\n  " + strings.Repeat("x", 33) + ": {url: http://h}\nroles:\n  \"a\\nb\": {}\n  \" x\": {}\n",
			[]string{
				"toryo.yaml:2:3: mcp_servers.My Server: this is not a name for a server; begin with a small letter and go on with small letters, digits, _ and -",
				"toryo.yaml:3:3: mcp_servers." + strings.Repeat("x", 33) + ": this name for a server is too long; use at most 32 characters",
				`toryo.yaml:5:3: roles."a\nb": this is not a name for a label; write the label as it is on the forge`,
				`toryo.yaml:6:3: roles. x: " x" begins or ends with a space; remove the spaces`,
			},
		},
		"server without a way to it": {
			"mcp_servers:\n  a:\n    timeout: 5s\n  b:\n",
			[]string{
				"toryo.yaml:2:3: mcp_servers.a: the server has neither a command nor a URL; set command or url",
				"toryo.yaml:4:3: mcp_servers.b: the server has neither a command nor a URL; set command or url",
			},
		},
		"server with two ways to it": {
			"mcp_servers:\n  a:\n    url: http://h\n    command: [x]\n",
			[]string{"toryo.yaml:4:5: mcp_servers.a.command: the server has both a command and a URL; set only one of them"},
		},
		"value in the environment is not repeated": {
			"mcp_servers:\n  a:\n    command: [x]\n    environment: [KEY=hunter2]\n",
			[]string{"toryo.yaml:4:19: mcp_servers.a.environment: an entry has a value; give the name alone, and set the variable where Toryo is started"},
		},
		"secret of Toryo in the environment": {
			"mcp_servers:\n  a:\n    command: [x]\n    environment: [TORYO_GITHUB_TOKEN]\n",
			[]string{"toryo.yaml:4:19: mcp_servers.a.environment: variables of Toryo, which can be secrets, are not passed on; give it a variable of its own"},
		},
		"secret in an entry": {
			"llm_overrides:\n  summary:\n    api_key: sk-0123456789\n",
			[]string{"toryo.yaml:3:5: llm_overrides.summary.api_key: a secret must not stand in the configuration file; use api_key_file"},
		},
		"phase that does not exist": {
			"llm_overrides:\n  planing: {temperature: 0}\n  lunch: {temperature: 0}\n",
			[]string{
				"toryo.yaml:2:3: llm_overrides.planing: there is no phase and no role of this name; did you mean planning?",
				"toryo.yaml:3:3: llm_overrides.lunch: there is no phase and no role of this name; use a phase, summary, chat, review or a label that stands in roles",
			},
		},
		"role that does not exist": {
			"roles:\n  BACKENDCODER: {}\nllm_overrides:\n  BACKENDCODR: {temperature: 0}\n",
			[]string{"toryo.yaml:4:3: llm_overrides.BACKENDCODR: there is no phase and no role of this name; did you mean BACKENDCODER?"},
		},
		"model of a role in two places": {
			"roles:\n  A: {temperature: 1}\nllm_overrides:\n  A: {temperature: 0}\n",
			[]string{"toryo.yaml:4:3: llm_overrides.A: the model of this role is also set in roles (toryo.yaml:2); keep one of the two"},
		},
		"other provider without a model": {
			"llm: {provider: script, script: /dev/null}\nllm_overrides:\n  planning:\n    provider: openai\n    base_url: http://h\n",
			[]string{"toryo.yaml:4:5: llm_overrides.planning.provider: openai needs the name of a model; name the model"},
		},
		"model without a provider": {
			"roles:\n  A:\n    model: m\n",
			[]string{"toryo.yaml:3:5: roles.A.model: a model is named, but no provider; set it to anthropic, openai, gemini, azure, bedrock, vertex or script"},
		},
		"one slip is reported once": {
			"llm:\n  provider: opnai\n  model: m\nllm_overrides:\n  planning:\n    model: n\n",
			[]string{`toryo.yaml:2:13: llm.provider: "opnai" is not allowed; use anthropic, openai, gemini, azure, bedrock, vertex or script`},
		},
		"no room for the question": {
			"llm_overrides:\n  summary:\n    context_length: 2048\n    max_tokens: 8192\n",
			[]string{"toryo.yaml:4:5: llm_overrides.summary.max_tokens: max_tokens (8192) must be less than context_length (2048); leave room for what is sent"},
		},
		"labels that mean something else": {
			"roles:\n  needs-review: {}\n  Approve-Plan: {}\n  Coding Agent Done: {}\n  Summary: {}\n  A: {}\n  a: {}\n",
			[]string{
				"toryo.yaml:2:3: roles.needs-review: this label is also review.label; choose another label",
				"toryo.yaml:3:3: roles.Approve-Plan: this label is also planning.approval_label; choose another label",
				`toryo.yaml:4:3: roles."Coding Agent Done": this label is also github.done_label; choose another label`,
				"toryo.yaml:5:3: roles.Summary: this is a name of llm_overrides that is not a role; choose another label",
				"toryo.yaml:7:3: roles.a: this role is there twice: labels do not differ by capital letters; remove one of them",
			},
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

func TestEntriesCanBeMerged(t *testing.T) {
	t.Parallel()
	text := "mcp_servers:\n  a: &a {command: [x], timeout: 5s}\n  b: {<<: *a, timeout: 9s}\n"
	config, report := parse("f", []byte(text), nil, nil)
	want := map[string]MCPServer{
		"a": {Command: Command{"x"}, Timeout: 5 * time.Second, InSandbox: true},
		"b": {Command: Command{"x"}, Timeout: 9 * time.Second, InSandbox: true},
	}
	if diff := cmp.Diff(want, config.MCPServers); diff != "" || len(report.Problems) > 0 {
		t.Errorf("%v (-want +got):\n%s", lines(report.Problems), diff)
	}
}

func TestFilesThatEntriesName(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{
		"toryo.yaml": "llm: {provider: anthropic, model: m, context_length: 32000}\n" +
			"llm_overrides:\n  planning: {api_key_file: key}\n  summary: {provider: openai, model: s, api_key_file: none}\n" +
			"roles:\n  A: {prompt_file: prompt.md, provider: gemini, model: g, api_key_file: key-of-role}\n  B: {prompt_file: missing.md}\n  C: {provider: gemini, model: g}\n",
		"key": "sk-of-planning\n", "key-of-role": "key-of-gemini", "prompt.md": "You are A.",
	})
	file := filepath.Join(dir, "toryo.yaml")
	config, report := Load(file, []string{"TORYO_LLM_API_KEY=sk-of-all-others"}, nil)
	wantProblems := []string{
		file + `:4:41: llm_overrides.summary.api_key_file: "` + dir + `/none": the file cannot be read: no such file or directory; check the path`,
		file + `:7:7: roles.B.prompt_file: "` + dir + `/missing.md": the file cannot be read: no such file or directory; check the path`,
	}
	if diff := cmp.Diff(wantProblems, lines(report.Problems)); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	wantWarnings := []string{file + ":8:3: roles.C.api_key: gemini needs a key, and there is none; set GOOGLE_API_KEY, GEMINI_API_KEY or roles.C.api_key_file"}
	if diff := cmp.Diff(wantWarnings, lines(report.Warnings)); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
	if got := config.Roles["A"].PromptFile; got != filepath.Join(dir, "prompt.md") {
		t.Errorf("prompt_file is %s", got)
	}
	if got := config.LLMOverrides["planning"].APIKey; got != "sk-of-planning" {
		t.Errorf("the key is %q", got.Reveal())
	}
	if got := report.Origin("llm_overrides.planning.api_key").String(); got != "api_key_file, "+file+":3" {
		t.Errorf("the key comes from %s", got)
	}
	secrets := config.Secrets()
	for _, secret := range []string{"sk-of-planning", "key-of-gemini", "sk-of-all-others"} {
		if !slices.ContainsFunc(secrets, func(s redact.Secret) bool { return s.Reveal() == secret }) {
			t.Errorf("%q is not among the secrets", secret)
		}
		if got := config.Redactor().String("<" + secret + ">"); got != "<••••>" {
			t.Errorf("%q is not masked", got)
		}
	}
	var out strings.Builder
	if err := report.Print(&out, config); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "roles.A.api_key = ••••  (api_key_file, "+file+":6)\n") || strings.Contains(out.String(), "sk-of") || strings.Contains(out.String(), "key-of-gemini") {
		t.Errorf("the listing is\n%s", out.String())
	}
}
