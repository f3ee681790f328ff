package notify

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/toryo-dev/toryo/internal/notify/format"
	"github.com/toryo-dev/toryo/internal/redact"
	"github.com/toryo-dev/toryo/internal/task"
)

func sender() *Sender { return NewSender(func() time.Time { return noon }) }

// receiver is a service, and a target that leads to it.
func receiver(t *testing.T, answer http.HandlerFunc) Target {
	t.Helper()
	web := httptest.NewServer(answer)
	t.Cleanup(web.Close)
	return Target{Name: "team", URL: redact.Secret(web.URL + "/hooks/s3cret?sig=s3cret"), Format: format.JSON, Language: task.English, Kinds: task.NeedKinds}
}

// The example of the specification of Standard Webhooks.
func TestSignature(t *testing.T) {
	t.Parallel()
	header := http.Header{}
	must(t, sign(header, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`)))
	if got := header.Get("Webhook-Signature"); got != "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=" {
		t.Errorf("the signature is %s", got)
	}
}

// A receiver can tell that a message is ours, and when it was sent.
func TestSignedMessage(t *testing.T) {
	t.Parallel()
	const secret = "a secret that both know"
	valid := false
	to := receiver(t, func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		sum := hmac.New(sha256.New, []byte(secret))
		sum.Write([]byte(r.Header.Get("Webhook-Id") + "." + r.Header.Get("Webhook-Timestamp") + "." + string(body)))
		valid = err == nil && r.Header.Get("Webhook-Signature") == "v1,"+base64.StdEncoding.EncodeToString(sum.Sum(nil)) && r.Header.Get("Webhook-Timestamp") == "1795003200"
	})
	to.Secret = secret
	must(t, sender().Send(t.Context(), to, Pages("").Test(task.English, noon)))
	if !valid {
		t.Error("the signature does not fit")
	}
}

// An address is that of others. What they answer is bounded, and leads nowhere else.
func TestUntrustedDestination(t *testing.T) {
	t.Parallel()
	inside := 0
	secret := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { inside++ }))
	t.Cleanup(secret.Close)
	for name, answer := range map[string]http.HandlerFunc{
		"a redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, secret.URL+"/metadata", http.StatusTemporaryRedirect)
		},
		"an answer without an end": func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			for r.Method != http.MethodHead {
				if _, err := w.Write([]byte(strings.Repeat("x", 1<<16))); err != nil {
					return
				}
			}
		},
		"headers without an end": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Long", strings.Repeat("x", 1<<20))
		},
		"control characters, and the address itself": func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, "\x1b[31m\x00\xff http://"+r.Host+r.RequestURI) // the test looks at what arrives
		},
		"a redirect that cannot be read, with the address": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "http://%zz/"+r.RequestURI+strings.Repeat("x", 2000))
			w.WriteHeader(http.StatusFound)
		},
		"an answer that is no HTTP, with the address": func(w http.ResponseWriter, r *http.Request) {
			connection, _, err := http.NewResponseController(w).Hijack()
			must(t, err)
			_, _ = io.WriteString(connection, "no HTTP at "+r.RequestURI+"\r\n\r\n") // the test looks at what arrives
			must(t, connection.Close())
		},
	} {
		to := receiver(t, answer)
		if _, err := sender().Reach(t.Context(), to); err != nil && strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v", name, err)
		}
		err := sender().Send(t.Context(), to, Pages("").Test(task.English, noon))
		if task.CodeOf(err) != task.Unavailable || len(err.Error()) > 1000 || strings.ContainsAny(err.Error(), "\x1b\x00\n") || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if inside > 0 {
		t.Error("a redirect was followed")
	}
}

// A service that does not answer is given up.
func TestHangingService(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	to := receiver(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	t.Cleanup(func() { close(release) })
	patient := sender()
	patient.client.Timeout = time.Millisecond
	err := patient.Send(t.Context(), to, Pages("").Test(task.English, noon))
	if task.CodeOf(err) != task.Unavailable || strings.Contains(err.Error(), "s3cret") {
		t.Error(err)
	}
}

// A test message arrives in every format.
func TestTestMessage(t *testing.T) {
	t.Parallel()
	for _, in := range []format.Name{format.Slack, format.Mattermost, format.Discord, format.Teams, format.JSON} {
		got := ""
		to := receiver(t, func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			got = string(body)
			w.WriteHeader(http.StatusNoContent)
		})
		to.Format = in
		must(t, sender().Send(t.Context(), to, Pages("https://toryo.example.com").Test(task.Japanese, noon)))
		if !strings.Contains(got, "テスト") || !strings.Contains(got, "https://toryo.example.com/") {
			t.Errorf("%s: %s", in, got)
		}
	}
}
