package config

import (
	"strings"
	"testing"
)

// FuzzLoad looks for files that make reading panic, or whose report is not one
// line for each problem within the file, or that show a secret.
func FuzzLoad(f *testing.F) {
	f.Add(Template())
	f.Add([]byte(uncommented(string(Template()))))
	f.Add([]byte(strings.ReplaceAll(string(Template()), "\n  #", "\n  ")))
	for _, text := range []string{
		"", "\ufeff", "a: [", "a: {b: ", "? a\n: b", "- - -", "a: &x *x", "<<: *a", "a: &a {<<: *a}", "github: &g\n  <<: *g",
		"gitlab: {projects: [a/b, *x, {c: d}]}", "language: !!binary ja", "---\n---\na: 1\n...", "%YAML 1.2\n---\n", "a: |\n  x\n", "a: >-\n\tx",
		"\"a\\x00b\": 1", "github:\n  token: s3cr3t-s3cr3t\n", "log:\r\n  level: 1\r", "llm: {temperature: .inf, prices: {input: 0x1F}}", "1: 2\n~: 3\n.nan: 4",
		"mcp_servers: {a: {command: [x, '', x], environment: [A=b]}, b: , c: [], d: {url: 'http://u:p@h'}}", "roles: {a.b: {prices: {input: 1}}, 'x\ny': {}, \"\": {}}",
		"llm_overrides: {summary: &o {model: m, api_key: s3cr3t-s3cr3t}, planning: {<<: *o}}", "sandbox: {memory: 4GB, command_timeout: 1d, network: {hosts: ['*', a:0]}}",
	} {
		f.Add([]byte(text))
	}
	const secret = "glpat-0123456789"
	f.Fuzz(func(t *testing.T, data []byte) {
		config, report := parse("toryo.yaml", data, []string{"TORYO_GITLAB_TOKEN=" + secret}, nil)
		most := 1 + strings.Count(strings.ReplaceAll(string(data), "\r\n", "\n"), "\n") + strings.Count(string(data), "\r")
		for _, p := range append(report.Problems, report.Warnings...) {
			text := p.String()
			if strings.ContainsAny(text, "\n\r") || p.Message == "" || strings.Contains(text, secret) {
				t.Errorf("problem: %q", text)
			}
			if p.Line < 0 || p.Line > most || p.Line > 0 && p.Column < 1 {
				t.Errorf("there is no line %d, column %d: %q", p.Line, p.Column, text)
			}
		}
		var out strings.Builder
		if err := report.Print(&out, config); err != nil || strings.Contains(out.String(), secret) {
			t.Errorf("listing: %v\n%s", err, out.String())
		}
	})
}
