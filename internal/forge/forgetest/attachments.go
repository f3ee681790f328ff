package forgetest

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

// Attachments checks how a forge reads the files of texts: our credential goes to the addresses
// for files of the forge itself, and nowhere else. SITE stands for the forge's own address, and
// HOST for its host and port.
type Attachments struct {
	Connect func(site string, client *http.Client) (forge.Attachments, error)
	// Header and Value are how the credential is sent.
	Header, Value string
	// Own are addresses of files in texts of owner/name, with the path that is asked for.
	Own map[string]string
	// Others are addresses for which the forge is not asked, beside those that are none on any
	// forge. Path is that of one of its own files.
	Others []string
	Path   string
}

// recorder notes every request that is sent.
type recorder struct {
	next http.RoundTripper
	sent []*http.Request
}

func (r *recorder) RoundTrip(request *http.Request) (*http.Response, error) {
	r.sent = append(r.sent, request)
	return r.next.RoundTrip(request)
}

// Run runs the checks.
func (a Attachments) Run(t *testing.T) {
	t.Helper()
	const most = 1000
	answers := map[string]http.HandlerFunc{
		"whole":   func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("file")) },
		"long":    func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(bytes.Repeat([]byte("x"), most+1)) },
		"missing": http.NotFound,
		"moved": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://x.example/f?s=1", http.StatusFound)
		},
		"forgotten": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusFound) },
	}
	var how string
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { answers[how](w, r) }))
	t.Cleanup(site.Close)
	sent := &recorder{next: http.DefaultTransport}
	from, err := a.Connect(site.URL, forge.HTTPClient(sent))
	if err != nil {
		t.Fatal(err)
	}
	read := func(address string) (forge.Attachment, error) {
		sent.sent = nil
		address = strings.NewReplacer("SITE", site.URL, "HOST", strings.TrimPrefix(site.URL, "http://")).Replace(address)
		return from.Attachment(t.Context(), "owner/name", address, most)
	}
	how = "whole"
	for address, path := range a.Own {
		got, err := read(address)
		if err != nil || !got.Own || string(got.Data) != "file" || got.Location != "" {
			t.Errorf("%s: got %+v, %v", address, got, err)
		}
		if len(sent.sent) != 1 || sent.sent[0].URL.EscapedPath() != path || "http://"+sent.sent[0].URL.Host != site.URL || sent.sent[0].Header.Get(a.Header) != a.Value {
			t.Errorf("%s: %d requests were sent: %+v", address, len(sent.sent), sent.sent)
		}
	}
	for _, address := range append(a.Others, "https://x.example"+a.Path, "//x.example"+a.Path, "https://HOST"+a.Path, "http://me@HOST"+a.Path,
		"http://HOST.x.example"+a.Path, "http://x.example@HOST"+a.Path, "SITE/x/.."+a.Path, "SITE/api/v1/user", "SITE/", "", "x"+a.Path, "file://"+a.Path, "http:"+a.Path, "SITE"+a.Path+"/../x") {
		if got, err := read(address); err != nil || got.Own || len(sent.sent) > 0 {
			t.Errorf("%s: got %+v, %v; sent %d requests", address, got, err, len(sent.sent))
		}
	}
	for kind, code := range map[string]task.Code{"long": task.TooLarge, "missing": task.NotFound} {
		how = kind
		if got, err := read(a.Path); task.CodeOf(err) != code || got.Data != nil {
			t.Errorf("%s: got %+v, %v", kind, got, err)
		}
	}
	how = "forgotten"
	if _, err := read(a.Path); err == nil {
		t.Error("a redirection to nowhere is no error")
	}
	how = "moved"
	if got, err := read(a.Path); err != nil || !got.Own || got.Location != "https://x.example/f?s=1" || len(sent.sent) != 1 {
		t.Errorf("moved: got %+v, %v; sent %d requests", got, err, len(sent.sent))
	}
}
