package forge_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

func TestCheckSignature(t *testing.T) {
	t.Parallel()
	body := []byte(`{"a":1}`)
	sign := func(secret string) string {
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write(body)
		return hex.EncodeToString(mac.Sum(nil))
	}
	tests := []struct {
		name, secret, signature string
		valid                   bool
	}{
		{"right", "s3cret", sign("s3cret"), true},
		{"in capitals", "s3cret", strings.ToUpper(sign("s3cret")), true},
		{"of another secret", "s3cret", sign("other"), false},
		{"shortened", "s3cret", sign("s3cret")[:32], false},
		{"missing", "s3cret", "", false},
		{"not hexadecimal", "s3cret", "zz", false},
		{"no secret is set", "", sign(""), false},
	}
	for _, test := range tests {
		err := forge.CheckSignature(test.secret, test.signature, body)
		if (err == nil) != test.valid || err != nil && task.CodeOf(err) != task.Unauthorized {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

func TestCheckToken(t *testing.T) {
	t.Parallel()
	for token, valid := range map[string]bool{"s3cret": true, "S3cret": false, "": false, "s3cret?": false} {
		if err := forge.CheckToken("s3cret", token); (err == nil) != valid {
			t.Errorf("%q: %v", token, err)
		}
	}
	if err := forge.CheckToken("", ""); task.CodeOf(err) != task.Unauthorized {
		t.Errorf("no secret is set: %v", err)
	}
}

func TestWebhookJSON(t *testing.T) {
	t.Parallel()
	const text = `{"a":"b & c=d"}`
	form := []byte(url.Values{"payload": {text}}.Encode())
	tests := []struct{ media, body, want string }{
		{"application/json", text, text},
		{"", text, text},
		{"application/x-www-form-urlencoded", string(form), text},
		{"application/x-www-form-urlencoded; charset=utf-8", string(form), text},
		{"application/x-www-form-urlencoded", "other=1", ""},
	}
	for _, test := range tests {
		got, err := forge.WebhookJSON(http.Header{"Content-Type": {test.media}}, []byte(test.body))
		if err != nil || string(got) != test.want {
			t.Errorf("%s: %q, %v", test.media, got, err)
		}
	}
	_, err := forge.WebhookJSON(http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, []byte("%zz"))
	if task.CodeOf(err) != task.Invalid {
		t.Errorf("a form that cannot be read: %v", err)
	}
}

func TestDeliveryID(t *testing.T) {
	t.Parallel()
	header := http.Header{}
	header.Set("X-Id", "72d3162e-cc78-11e3-81ab-4c9367dc0958")
	if got := forge.DeliveryID(header, "X-Id"); got != "72d3162e-cc78-11e3-81ab-4c9367dc0958" {
		t.Errorf("got %q", got)
	}
	header.Set("X-Id", strings.Repeat("x", 1000))
	if got := forge.DeliveryID(header, "X-Id"); got != "" {
		t.Errorf("an absurd id is kept: %.20q", got)
	}
}
