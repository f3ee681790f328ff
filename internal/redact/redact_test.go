package redact_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/toryo-dev/toryo/internal/redact"
)

const secret = `p@ss/w"ord+<&>~日本"`

func TestEveryFormOfASecretIsMasked(t *testing.T) {
	t.Parallel()
	r := redact.New(secret)
	inJSON, err := json.Marshal(map[string]string{"key": secret})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"plain":           "the secret is " + secret + ", do not tell",
		"twice":           secret + secret,
		"Go syntax":       fmt.Sprintf("%q", secret),
		"JSON":            string(inJSON),
		"query":           "https://host/?" + url.Values{"token": {secret}}.Encode(),
		"path":            "https://host/" + url.PathEscape(secret) + "/x",
		"small escapes":   "https://host/" + strings.ToLower(url.QueryEscape(secret)),
		"user of a URL":   (&url.URL{Scheme: "https", User: url.UserPassword("me", secret), Host: "host"}).String(),
		"base64":          base64.StdEncoding.EncodeToString([]byte(secret)),
		"base64 for URLs": base64.RawURLEncoding.EncodeToString([]byte(secret)),
		"hexadecimal":     hex.EncodeToString([]byte(secret)),
		"large digits":    strings.ToUpper(hex.EncodeToString([]byte(secret))),
		"basic auth":      "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("x-access-token:"+secret)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			masked := r.String(text)
			if masked == text || !strings.Contains(masked, redact.Mask) {
				t.Fatalf("not masked: %s", masked)
			}
			for _, part := range []string{secret, "p@ss", "ord", "word"} {
				if strings.Contains(masked, part) {
					t.Errorf("%q is left in %s", part, masked)
				}
			}
		})
	}
}

// Whatever stands around a secret before it is encoded, at least its inner part
// is masked.
func TestBase64OfALongerText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.StringMatching(`[A-Za-z0-9_+/-]{8,60}`).Draw(t, "secret")
		before := rapid.StringN(0, 20, 40).Draw(t, "before")
		after := rapid.StringN(0, 20, 40).Draw(t, "after")
		encoding := rapid.SampledFrom([]*base64.Encoding{base64.StdEncoding, base64.URLEncoding, base64.RawStdEncoding, base64.RawURLEncoding}).Draw(t, "encoding")
		masked := redact.New(value).String(encoding.EncodeToString([]byte(before + value + after)))
		if !strings.Contains(masked, redact.Mask) {
			t.Fatalf("not masked: %s", masked)
		}
	})
}

// Programs break base64 into lines.
func TestBase64InLines(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("0123456789abcdefghij", 8) // 160 bytes
	encoded := base64.StdEncoding.EncodeToString([]byte(long))
	for _, width := range []int{64, 76} {
		var lines []string
		for text := encoded; text != ""; text = text[min(width, len(text)):] {
			lines = append(lines, text[:min(width, len(text))])
		}
		masked := redact.New(long).String(strings.Join(lines, "\n"))
		for _, line := range lines {
			if len(line) >= 16 && strings.Contains(masked, line) {
				t.Errorf("%q is left of lines of %d", line, width)
			}
		}
	}
}

func TestNoSecretIsEverLeft(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.StringMatching(`[a-z]{8,12}`), 1, 4).Draw(t, "secrets")
		parts := rapid.SliceOf(rapid.OneOf(rapid.SampledFrom(values), rapid.StringMatching(`[A-Z ]{0,10}`))).Draw(t, "parts")
		text := strings.Join(parts, " ")
		masked := redact.New(values...).String(text)
		for _, value := range values {
			if strings.Contains(masked, value) {
				t.Fatalf("%q is left in %q", value, masked)
			}
		}
		if again := redact.New(values...).String(masked); again != masked {
			t.Fatalf("masking twice changes %q to %q", masked, again)
		}
	})
}

func TestTheLongerOfTwoSecretsWins(t *testing.T) {
	t.Parallel()
	r := redact.New("password", "password-of-production")
	if got := r.String("it is password-of-production"); got != "it is ••••" {
		t.Errorf("masked to %q", got)
	}
}

func TestWhatIsNotSearchedFor(t *testing.T) {
	t.Parallel()
	r := redact.New("", "   ", "admin", "日本語日本語日") // the last has seven characters
	for _, text := range []string{"the admin page", "", "日本語日本語日", strings.Repeat("x", 100)} {
		if got := r.String(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
	if got := new(redact.Redactor).String("anything at all"); got != "anything at all" {
		t.Errorf("the zero redactor made %q", got)
	}
}

func TestWhiteSpaceAroundASecretDoesNotCount(t *testing.T) {
	t.Parallel()
	if got := redact.New("  0123456789\n").String("<0123456789>"); got != "<••••>" {
		t.Errorf("masked to %q", got)
	}
}

// privateKey looks like one that an App has; its last line is short.
func privateKey(end string) string {
	lines := []string{"-----BEGIN RSA PRIVATE KEY-----"}
	for i := range 25 {
		lines = append(lines, fmt.Sprintf("MIIEpAIBAAKCAQEA%02d%s+/", i, strings.Repeat("k", 44)))
	}
	return strings.Join(append(lines, "short==", "-----END RSA PRIVATE KEY-----"), end) + end
}

func TestASecretOfSeveralLinesIsMaskedWholeAndLineByLine(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]string{"LF": "\n", "CRLF": "\r\n"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			key := privateKey(end)
			r := redact.New(key)
			if got := r.String("before " + key + "after"); got != "before ••••"+end+"after" {
				t.Errorf("the whole key became %q", got)
			}
			inJSON, err := json.Marshal(key)
			if err != nil {
				t.Fatal(err)
			}
			for way, text := range map[string]string{
				"numbered":  "12: " + strings.Join(strings.Fields(key), "\n13: "),
				"other end": strings.ReplaceAll(strings.ReplaceAll(key, "\r", ""), "\n", "\\n"),
				"indented":  "key: |\n  " + strings.Join(strings.Split(key, end), "\n  "),
				"JSON":      string(inJSON),
				"cut":       key[:len(key)/2-20],
			} {
				if got := r.String(text); strings.Count(got, "MIIEpAIBAAKCAQEA") > strings.Count(way, "cut") {
					t.Errorf("%s: lines are left in %q", way, got)
				}
			}
			frame := "-----BEGIN RSA PRIVATE KEY----- short=="
			if got := r.String(frame); got != frame {
				t.Errorf("what is no secret became %q", got)
			}
		})
	}
	prose := "the first line of a secret note\nhunter2-hunter2-hunter2"
	if got := redact.New(prose).String("the first line of a secret note"); got != "the first line of a secret note" {
		t.Errorf("prose became %q", got)
	}
}

func TestSecretsCanBeAddedWhileTextsPass(t *testing.T) {
	t.Parallel()
	r := redact.New()
	var work sync.WaitGroup
	for i := range 8 {
		work.Go(func() {
			value := fmt.Sprintf("secret-number-%d", i)
			r.Add(value)
			for range 50 {
				if got := r.String("say " + value); got != "say ••••" {
					t.Errorf("masked to %q", got)
				}
			}
		})
	}
	work.Wait()
	for i := range 8 {
		if got := r.String(fmt.Sprintf("secret-number-%d", i)); got != redact.Mask {
			t.Errorf("secret %d is forgotten: %q", i, got)
		}
	}
}

func TestASecretNeverShowsItself(t *testing.T) {
	t.Parallel()
	const value = redact.Secret("short")
	type holder struct {
		Name  string
		Token redact.Secret
		List  []redact.Secret
		ByKey map[string]redact.Secret
		Ref   *redact.Secret
	}
	copied := value
	held := holder{"n", value, []redact.Secret{value}, map[string]redact.Secret{"k": value}, &copied}
	texts := []string{value.String(), value.GoString(), value.LogValue().String()}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%10s", "%t"} {
		texts = append(texts, fmt.Sprintf(verb, value), fmt.Sprintf(verb, held), fmt.Sprintf(verb, &held), fmt.Sprintf(verb, []any{value}))
	}
	for _, item := range []any{value, held, &held, map[string]any{"a": value}} {
		text, err := json.Marshal(item)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	text, err := value.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range append(texts, string(text)) {
		if strings.Contains(text, "short") || strings.Contains(text, "73686f7274") || strings.Contains(text, "73686F7274") || !strings.Contains(text, redact.Mask) {
			t.Errorf("shown as %s", text)
		}
	}
	if value.Reveal() != "short" {
		t.Errorf("Reveal gives %q", value.Reveal())
	}
}

func BenchmarkLogLineWithPrivateKey(b *testing.B) {
	r := redact.New("ghp_0123456789abcdefghij", "a-password", privateKey("\n"))
	line := strings.Repeat("a line of the log that holds nothing of interest, 12:34:56 ", 4)
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	for b.Loop() {
		r.String(line)
	}
}

func BenchmarkLogLine(b *testing.B) {
	r := redact.New("ghp_0123456789abcdefghij", "glpat-0123456789abcdef", "sk-ant-0123456789abcdef", "postgres://toryo:a-password@db:5432/toryo", "a-password")
	line := strings.Repeat("a line of the log that holds nothing of interest, 12:34:56 ", 4)
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	for b.Loop() {
		r.String(line)
	}
}
