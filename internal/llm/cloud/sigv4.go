package cloud

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// keys are what a request to AWS is signed with.
type keys struct {
	ID, Secret, Session string
}

// sign is Signature Version 4: what is sent is signed by a key that is derived from the secret,
// which itself is not sent.
type signer struct {
	keys            func(ctx context.Context) (keys, error)
	region, service string
	now             func() time.Time
}

func (s signer) authorize(ctx context.Context, request *http.Request, body []byte) error {
	with, err := s.keys(ctx)
	if err != nil {
		return err
	}
	s.sign(request, body, with, s.now().UTC())
	return nil
}

const (
	algorithm  = "AWS4-HMAC-SHA256"
	timeFormat = "20060102T150405Z"
)

// sign signs the host, the content type and what is for AWS. Other headers may be changed on the
// way.
func (s signer) sign(request *http.Request, body []byte, with keys, at time.Time) {
	stamp := at.Format(timeFormat)
	request.Header.Set("X-Amz-Date", stamp)
	if with.Session != "" {
		request.Header.Set("X-Amz-Security-Token", with.Session)
	}
	names, headers := signedHeaders(request)
	canonical := strings.Join([]string{
		request.Method, canonicalPath(request.URL), canonicalQuery(request.URL), headers, names, hash(body),
	}, "\n")
	scope := strings.Join([]string{stamp[:8], s.region, s.service, "aws4_request"}, "/")
	toSign := strings.Join([]string{algorithm, stamp, scope, hash([]byte(canonical))}, "\n")
	key := []byte("AWS4" + with.Secret)
	for part := range strings.SplitSeq(scope, "/") {
		key = mac(key, part)
	}
	request.Header.Set("Authorization", fmt.Sprintf("%s Credential=%s/%s, SignedHeaders=%s, Signature=%s",
		algorithm, with.ID, scope, names, hex.EncodeToString(mac(key, toSign))))
}

func hash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func mac(key []byte, text string) []byte {
	made := hmac.New(sha256.New, key)
	_, _ = made.Write([]byte(text)) // a hash takes everything
	return made.Sum(nil)
}

func signedHeaders(request *http.Request) (names, lines string) {
	host := request.Host
	if host == "" {
		host = request.URL.Host
	}
	signed := map[string]string{"host": host}
	for name, values := range request.Header {
		if name = strings.ToLower(name); name == "content-type" || strings.HasPrefix(name, "x-amz-") {
			for i, value := range values {
				values[i] = strings.Join(strings.Fields(value), " ")
			}
			signed[name] = strings.Join(values, ",")
		}
	}
	var all []string
	for name := range signed {
		all = append(all, name)
	}
	slices.Sort(all)
	var text strings.Builder
	for _, name := range all {
		text.WriteString(name + ":" + signed[name] + "\n")
	}
	return strings.Join(all, ";"), text.String()
}

// canonicalPath escapes the path as it is sent once more, as all services but S3 want it.
func canonicalPath(at *url.URL) string {
	path := at.EscapedPath()
	if path == "" {
		return "/"
	}
	parts := strings.Split(path, "/")
	for i, part := range parts {
		parts[i] = escape(part)
	}
	return strings.Join(parts, "/")
}

func canonicalQuery(at *url.URL) string {
	var all []string
	for name, values := range at.Query() {
		for _, value := range values {
			all = append(all, escape(name)+"="+escape(value))
		}
	}
	slices.Sort(all)
	return strings.Join(all, "&")
}

// escape escapes all but the characters that RFC 3986 calls unreserved.
func escape(text string) string {
	var made strings.Builder
	for i := range len(text) {
		c := text[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '.', c == '_', c == '~':
			made.WriteByte(c)
		default:
			fmt.Fprintf(&made, "%%%02X", c)
		}
	}
	return made.String()
}
