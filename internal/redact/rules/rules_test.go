package rules_test

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/pelletier/go-toml/v2"
	"pgregory.net/rapid"

	"github.com/toryo-dev/toryo/internal/redact/rules"
)

type known string

func (k known) String(text string) string { return strings.ReplaceAll(text, string(k), "••••") }

func redactor(t testing.TB) *rules.Redactor {
	t.Helper()
	r, err := rules.New(known("hunter22-hunter22"))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The examples are put together here so that no scanner takes this file for a
// leak.
var secrets = map[string]string{
	"GitHub":      "ghp_" + "x7Kq9ZbT2mWv4RpL8nYc1DsF6gHj3QaEu5Xo",
	"GitLab":      "glpat-" + "x7Kq9ZbT2mWv4RpL8nYc",
	"Slack":       "xoxb-" + "263594206564-2343594206574-FGqddMF8t08v8N7Oq4i57vs1",
	"AWS":         "AKIA" + "Z7VRSQ5TJN2XLBWC",
	"private key": "-----BEGIN RSA PRIVATE KEY-----\n" + strings.Repeat("MIIEpAIBAAKCAQEAx7Kq9ZbT2mWv4RpL8nYc1DsF6gHj3QaEu5XoT2mWv4RpL8nY\n", 4) + "-----END RSA PRIVATE KEY-----",
	"known":       "hunter22-hunter22",
}

func TestSecretsAreMasked(t *testing.T) {
	t.Parallel()
	r := redactor(t)
	for name, secret := range secrets {
		for _, form := range []string{"token: %s\n", "run with\nexport KEY=%s # gitleaks:allow\nand more", `{"key": "%s"}`} {
			text := fmt.Sprintf(form, secret)
			got := r.String(text)
			if strings.Contains(got, secret) || !strings.Contains(got, "••••") {
				t.Errorf("%s is left in %q", name, got)
			}
			if again := r.String(got); again != got {
				t.Errorf("%s: masked twice it is %q", name, again)
			}
		}
	}
}

// Every rule masks what its own pattern describes, made up at random. Not each of
// the texts: one may be too even, or look like an exception.
func TestEveryRuleMasks(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("gitleaks.toml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Rules []struct {
			ID, Path, Regex string
			Keywords        []string
		}
	}
	if err := toml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	r := redactor(t)
	used := 0
	for _, rule := range file.Rules {
		if rule.Path != "" || rule.ID == "generic-api-key" { // for files of a certain name, and too eager
			continue
		}
		used++
		masks := false
		made := rapid.StringMatching(rule.Regex)
		for seed := 0; seed < 60 && !masks; seed++ {
			masks = strings.Contains(r.String("some text\n"+rule.Keywords[0]+" "+made.Example(seed)+"\nmore text"), "••••")
		}
		if !masks {
			t.Errorf("%s masks nothing", rule.ID)
		}
	}
	if used < 200 {
		t.Errorf("there are %d rules only", used)
	}
}

func TestOrdinaryTextIsLeftAlone(t *testing.T) {
	t.Parallel()
	r := redactor(t)
	for _, text := range []string{
		"", "short", "commit 9a3f5cb1d2e4f60718293a4b5c6d7e8f90123456 fixes it",
		`const apiKeyHeader = "X-Api-Key-Of-The-Request"`, `secret_key = os.environ["SECRET_KEY"]`,
		"550e8400-e29b-41d4-a716-446655440000", "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
		"h1:abcdefghijklmnopqrstuvwxyz0123456789ABCDEFG=", "日本語のテキスト、鍵はありません。",
	} {
		if got := r.String(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func TestAtOnce(t *testing.T) {
	t.Parallel()
	r := redactor(t)
	text := "a " + secrets["GitHub"] + " b " + secrets["AWS"] + " c"
	want := r.String(text)
	var group sync.WaitGroup
	for range 16 {
		group.Go(func() {
			if got := r.String(text); got != want {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
	group.Wait()
}

func BenchmarkRedactMegabyte(b *testing.B) {
	r := redactor(b)
	text := strings.Repeat("func main() { fmt.Println(\"token of the request\", key) } // ordinary source\n", 14_000)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		r.String(text)
	}
}
