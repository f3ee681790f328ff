package cloud

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"
)

// The requests and signatures are of the test suite that AWS publishes for Signature Version 4.
func TestPublishedSignatures(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		method, address, body, kind string
		signed, want                string
	}{
		"get-vanilla":                      {"GET", "/", "", "", "host;x-amz-date", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
		"get-vanilla-query-order-key-case": {"GET", "/?Param2=value2&Param1=value1", "", "", "host;x-amz-date", "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"},
		"post-vanilla":                     {"POST", "/", "", "", "host;x-amz-date", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"},
		"post-x-www-form-urlencoded":       {"POST", "/", "Param1=value1", "application/x-www-form-urlencoded", "content-type;host;x-amz-date", "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a"},
		"get-vanilla-utf8-query":           {"GET", "/?\u1234=bar", "", "", "host;x-amz-date", "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04"},
	} {
		request, err := http.NewRequestWithContext(t.Context(), test.method, "https://example.amazonaws.com"+test.address, strings.NewReader(test.body))
		if err != nil {
			t.Fatal(err)
		}
		if test.kind != "" {
			request.Header.Set("Content-Type", test.kind)
		}
		with := keys{ID: "AKIDEXAMPLE", Secret: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"}
		made := signer{
			keys: func(context.Context) (keys, error) { return with, nil }, region: "us-east-1", service: "service",
			now: func() time.Time { return time.Date(2015, 8, 30, 12, 36, 0, 0, time.UTC) },
		}
		if err := made.authorize(t.Context(), request, []byte(test.body)); err != nil {
			t.Fatal(err)
		}
		want := "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders=" + test.signed + ", Signature=" + test.want
		if got := request.Header.Get("Authorization"); got != want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, want)
		}
	}
}
