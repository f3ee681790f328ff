package program

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// toldMessage is what a receiver of notifications reads.
type toldMessage struct {
	Type  string
	Needs []struct{ Key, Kind, What, URL string }
}

// newReceiver is a program that receives notifications and checks their signatures.
func newReceiver(t *testing.T, secret string) (url string, received <-chan toldMessage) {
	t.Helper()
	messages := make(chan toldMessage, 100)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		body, err := io.ReadAll(r.Body)
		sum := hmac.New(sha256.New, []byte(secret))
		sum.Write([]byte(r.Header.Get("Webhook-Id") + "." + r.Header.Get("Webhook-Timestamp") + "." + string(body)))
		var message toldMessage
		if err != nil || json.Unmarshal(body, &message) != nil || r.Header.Get("Webhook-Signature") != "v1,"+base64.StdEncoding.EncodeToString(sum.Sum(nil)) {
			t.Errorf("received %s with %v, %v", body, r.Header, err)
		}
		messages <- message
	}))
	t.Cleanup(web.Close)
	return web.URL + "/hooks/0123456789", messages
}

func awaitMessage(t *testing.T, received <-chan toldMessage) toldMessage {
	t.Helper()
	select {
	case message := <-received:
		return message
	case <-time.After(2 * time.Minute):
		t.Fatal("nobody is told anything")
		return toldMessage{}
	}
}

// notifyConfig writes the configuration of a server that tells a receiver what waits for
// people.
func notifyConfig(t *testing.T, url, secret string) string {
	t.Helper()
	folder := t.TempDir()
	for name, text := range map[string]string{
		"url": url, "secret": secret,
		"toryo.yaml": "notifications:\n  webhooks:\n    team: {format: json, url_file: url, secret_file: secret}\n",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(folder, "toryo.yaml")
}

// addWebhook adds one to the configuration, to which people look from now on.
func addWebhook(t *testing.T, file, url string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(filepath.Dir(file), "late"), []byte(url), 0o600); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, append(text, "    late: {format: json, url_file: late, secret_file: secret}\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
}

// People are told once of what waits for them: by one of two servers, and by a server that was
// started again. The address is in no log and on no standard output.
func TestPeopleAreToldOnce(t *testing.T) {
	t.Parallel()
	for _, driver := range []string{"sqlite", "postgres"} {
		t.Run(driver, func(t *testing.T) {
			t.Parallel()
			const secret = "a secret that both of them know"
			url, received := newReceiver(t, secret)
			file := notifyConfig(t, url, secret)
			here := newPlace(t, driver)
			servers := []process{here.start(t, "serve", "--config", file)}
			if driver == "postgres" {
				beside := here
				beside.data = filepath.Join(t.TempDir(), "data")
				servers = append(servers, beside.start(t, "serve", "--config", file))
			}
			here.output(t, "pause", "--all")
			first := awaitMessage(t, received)
			if len(first.Needs) != 1 || first.Needs[0].Kind != "pause" || !strings.HasPrefix(first.Needs[0].URL, "http://127.0.0.1:") {
				t.Errorf("told %+v", first)
			}
			said := ""
			for _, one := range servers {
				said += one.stop(t) + one.stderr.String()
			}
			// The first pause is still there: one that is new hears of it, and the other does not again.
			lateURL, late := newReceiver(t, secret)
			addWebhook(t, file, lateURL)
			server := here.start(t, "serve", "--config", file)
			if told := awaitMessage(t, late); len(told.Needs) != 1 || told.Needs[0].Key != first.Needs[0].Key {
				t.Errorf("told %+v after %+v", told, first)
			}
			here.output(t, "resume", "--all")
			here.output(t, "pause", "--all")
			second := awaitMessage(t, received)
			if len(second.Needs) != 1 || second.Needs[0].Kind != "pause" || second.Needs[0].Key == first.Needs[0].Key {
				t.Errorf("told %+v after %+v", second, first)
			}
			said += server.stop(t) + server.stderr.String()
			if len(received) > 0 {
				t.Errorf("%d more messages came", len(received))
			}
			if strings.Contains(said, "0123456789") || strings.Contains(said, secret) {
				t.Errorf("a secret is in %s", said)
			}
		})
	}
}

// toryo notify test sends a message, toryo doctor sends none.
func TestTryingNotifications(t *testing.T) {
	t.Parallel()
	const secret = "a secret that both of them know"
	url, received := newReceiver(t, secret)
	file := notifyConfig(t, url, secret)
	run := func(args ...string) (string, error) {
		command := exec.CommandContext(t.Context(), "toryo", append(args, "--config", file)...)
		command.Dir = filepath.Dir(file)
		said, err := command.CombinedOutput()
		return string(said), err
	}
	if said, err := run("notify", "test"); err != nil || said != "team accepted the test message\n" {
		t.Errorf("it says %q, %v", said, err)
	}
	if message := awaitMessage(t, received); message.Type != "test" || !strings.Contains(message.Needs[0].What, "Test message") {
		t.Errorf("told %+v", message)
	}
	if said, err := run("notify", "test", "nobody"); err == nil || !strings.Contains(said, `notifications.webhooks has no "nobody"`) || !strings.Contains(said, "team") {
		t.Errorf("it says %q, %v", said, err)
	}
	if said, _ := run("doctor", "--data", filepath.Join(t.TempDir(), "data")); !strings.Contains(said, "team (json): answers, HTTP 405") || strings.Contains(said, "0123456789") {
		t.Errorf("it says %s", said)
	}
	if len(received) > 0 {
		t.Error("the doctor has sent a message")
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(file), "url"), []byte("http://127.0.0.1:1/hooks/0123456789"), 0o600); err != nil {
		t.Fatal(err)
	}
	// One that fails does not keep the others from being tried.
	if err := os.WriteFile(filepath.Join(filepath.Dir(file), "good"), []byte(url), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("notifications:\n  webhooks:\n    team: {url_file: url}\n    zeal: {url_file: good, secret_file: secret}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if said, err := run("notify", "test"); err == nil || !strings.Contains(said, "zeal accepted the test message") || !strings.Contains(said, "the webhook team cannot be reached") {
		t.Errorf("it says %q, %v", said, err)
	}
	if said, err := run("notify", "test", "team"); err == nil || strings.Contains(said, "0123456789") || !strings.Contains(said, "connection refused") {
		t.Errorf("it says %q, %v", said, err)
	}
}
