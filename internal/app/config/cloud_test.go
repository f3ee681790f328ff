package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The key of one server never goes to another as the key of the fallback.
func TestTheKeyOfTheFallback(t *testing.T) {
	t.Parallel()
	base := "llm:\n  provider: anthropic\n  model: strong\n  prices: {input: 3}\n  fallback: "
	environ := []string{"TORYO_LLM_API_KEY=key-of-the-first", "OPENAI_API_KEY=key-of-openai", "AWS_BEARER_TOKEN_BEDROCK=key-of-bedrock"}
	for name, test := range map[string]struct {
		fallback string
		variable string
		key      string
		prices   Prices
		problem  string
	}{
		"another model of the same server": {"{model: small}", "", "key-of-the-first", Prices{}, ""},
		"another provider with its own":    {"{provider: gemini, model: g}", "TORYO_LLM_FALLBACK_API_KEY=key-of-gemini", "key-of-gemini", Prices{}, ""},
		"another provider without":         {"{provider: gemini, model: g}", "", "", Prices{}, "gemini needs a key, and there is none"},
		"the variable of a vendor":         {"{provider: openai, model: g}", "", "key-of-openai", Prices{}, ""},
		"no variable at another address":   {"{provider: openai, model: g, base_url: 'http://127.0.0.1:1/v1'}", "", "", Prices{}, ""},
		"another address":                  {"{base_url: 'https://gateway.example.com'}", "", "", Prices{Input: 3}, ""},
		"another address with its own":     {"{base_url: 'https://gateway.example.com'}", "TORYO_LLM_FALLBACK_API_KEY=key-of-gateway", "key-of-gateway", Prices{Input: 3}, ""},
		"a cloud":                          {"{provider: bedrock, model: anthropic.m, region: us-east-1}", "", "key-of-bedrock", Prices{}, ""},
		"the variable not to a gateway":    {"{provider: bedrock, model: anthropic.m, region: us-east-1, base_url: 'https://gateway.example.com'}", "", "", Prices{}, "needs a key or credentials, and there are none"},
		"the model itself":                 {"{temperature: 0}", "", "key-of-the-first", Prices{Input: 3}, "the fallback is the model itself"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, report := parse("f", []byte(base+test.fallback+"\n"), append([]string{test.variable}, environ...), nil)
			second := c.fallback()
			if second.APIKey.Reveal() != test.key || second.Prices != test.prices {
				t.Errorf("the key is %q and the prices are %+v", second.APIKey.Reveal(), second.Prices)
			}
			if found := append(lines(report.Problems), lines(report.Warnings)...); (test.problem == "") != (len(found) == 0) || test.problem != "" && !strings.Contains(found[0], test.problem) {
				t.Errorf("problems: %v", found)
			}
			if first := c.ModelFor(); first.APIKey != "key-of-the-first" || first.Model != "strong" || first.Prices.Input != 3 {
				t.Errorf("the first model has changed: %+v", first)
			}
		})
	}
}

func TestAModelIsNoFallbackForItself(t *testing.T) {
	t.Parallel()
	c, report := parse("f", []byte("llm: {provider: anthropic, model: strong, fallback: {model: small}}\nllm_overrides: {summary: {model: small}, planning: {model: other}}\n"), []string{"TORYO_LLM_API_KEY=k"}, nil)
	if err := report.Err(); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"": true, "planning": true, "summary": false} {
		if second, got := c.FallbackFor(name); got != want || second.Model != "small" {
			t.Errorf("%q has the fallback %q: %v, want %v", name, second.Model, got, want)
		}
	}
	if _, got := Default().FallbackFor(); got {
		t.Error("there is a fallback without configuration")
	}
}

func TestClouds(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"provider: azure, model: m, api_key: k, base_url: 'https://r.openai.azure.com'":                                                        "",
		"provider: azure, model: m, base_url: 'https://r.openai.azure.com', credentials: workload":                                             "",
		"provider: azure, model: m, api_key: k, base_url: 'https://r.openai.azure.com', api: responses, deployment: d":                         "",
		"provider: azure, model: m, api_key: k":                                                                                                "no base_url is set",
		"provider: azure, model: m, base_url: 'https://r.openai.azure.com'":                                                                    "needs a key or credentials, and there are none",
		"provider: azure, model: m, base_url: 'https://r.openai.azure.com', credentials: file":                                                 "there are no credentials of the kind file; there are key, environment, token_file",
		"provider: bedrock, model: m, region: eu-central-1, credentials: file, profile: p":                                                     "",
		"provider: bedrock, model: m, credentials: environment":                                                                                "no region is set",
		"provider: bedrock, model: m, region: evil.example.com/, credentials: environment":                                                     "other characters than small letters",
		"provider: bedrock, model: m, region: x, project: p, credentials: environment":                                                         "only vertex has this",
		"provider: vertex, model: m, region: global, project: p, credentials: metadata":                                                        "",
		"provider: vertex, model: m, region: global, credentials: metadata":                                                                    "no project is set",
		"provider: vertex, model: m, region: global, project: p, credentials: token_file":                                                      "no credentials_file is set",
		"provider: vertex, model: m, region: global, project: p, credentials: environment":                                                     "there are no credentials of the kind environment",
		"provider: openai, model: m, api_key: k, region: x":                                                                                    "only bedrock, vertex has this",
		"provider: anthropic, model: m, api_key: k, credentials: metadata":                                                                     "only azure, bedrock, vertex has this",
		"provider: bedrock, model: m, region: x, credentials: environment, fallback: {provider: vertex, model: gemini, credentials: metadata}": "no region is set",
	} {
		var environ []string
		if without := strings.Replace(text, ", api_key: k", "", 1); without != text {
			text, environ = without, []string{"TORYO_LLM_API_KEY=k"}
		}
		_, report := parse("f", []byte("llm: {"+text+"}\n"), environ, nil)
		found := strings.Join(append(lines(report.Problems), lines(report.Warnings)...), "\n")
		if want == "" && found != "" || !strings.Contains(found, want) || want != "" && strings.Count(found, "\n") > 0 {
			t.Errorf("%s: %q, want %q", text, found, want)
		}
	}
}

// Variables of the clouds are read where a cloud is configured, and are secrets.
func TestCloudVariables(t *testing.T) {
	t.Parallel()
	environ := []string{"AWS_ACCESS_KEY_ID=AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY=very-secret-value", "PATH=/bin", "AZURE_CLIENT_SECRET="}
	c, report := parse("f", []byte("llm: {provider: bedrock, model: m, region: x, credentials: environment}\n"), environ, nil)
	if err := report.Err(); err != nil {
		t.Fatal(err)
	}
	model := c.ModelFor()
	if model.Variable("AWS_SECRET_ACCESS_KEY") != "very-secret-value" || model.Variable("AWS_ACCESS_KEY_ID") != "AKIDEXAMPLE" || model.Variable("PATH") != "" {
		t.Errorf("%+v", model.Variables)
	}
	if text := c.Redactor().String("it is very-secret-value"); strings.Contains(text, "very-secret") {
		t.Errorf("%q", text)
	}
	c, _ = parse("f", []byte("llm: {provider: openai, model: m, base_url: 'http://h'}\n"), environ, nil)
	if diff := cmp.Diff("", c.ModelFor().Variable("AWS_SECRET_ACCESS_KEY")); diff != "" {
		t.Errorf("%s", diff)
	}
}
