package agent_test

import (
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/agent"
	"github.com/toryo-dev/toryo/internal/redact"
	"github.com/toryo-dev/toryo/internal/task"
)

// A program prints the key that it was given, in ways that programs do. None of
// that is told to people.
func TestSecretsOfVariablesAreNotTold(t *testing.T) {
	t.Parallel()
	const secret = "sk-live/9f8e7d6c5b4a+3210=&x"
	script := `printf '%s\n' "$KEY" "key=$KEY."; printf %s "$KEY" | base64 -w0; echo; printf %s "user:$KEY" | base64 -w0; echo
printf %s "$KEY" | od -An -tx1 | tr -d ' \n'; echo; exit 3`
	server := newHouse(t, assignment())
	s := newShop(t, server.URL, "sh", "-c", script)
	command := s.Executors[task.Development].(agent.Command)
	command.Env = map[string]string{"KEY": secret}
	s.Executors[task.Development] = command
	s.Redactor = redact.New(secret)
	closing := s.open(t)
	server.await(t, "a result", func() bool { return len(server.results) == 1 })
	if err := closing(); err != nil {
		t.Errorf("at its end: %v", err)
	}
	comment := server.results[0].Comment
	if !strings.Contains(comment, redact.Mask) || !strings.Contains(comment, "key=") {
		t.Fatalf("the comment does not have what was printed: %s", comment)
	}
	for _, form := range []string{secret, base64.StdEncoding.EncodeToString([]byte(secret)), base64.RawURLEncoding.EncodeToString([]byte(secret)),
		base64.StdEncoding.EncodeToString([]byte("user:" + secret))[8:30], hex.EncodeToString([]byte(secret)), url.QueryEscape(secret)} {
		if strings.Contains(comment, form) {
			t.Errorf("the comment has %q:\n%s", form, comment)
		}
	}
}
