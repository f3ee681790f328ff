package transport

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// CachedResponse is a response of a forge that is kept.
type CachedResponse struct {
	ETag         string
	LastModified string
	Status       int
	Header       http.Header
	Body         []byte
	StoredAt     time.Time
}

// Cache keeps answers by keys that have no secret in them. Losing answers costs
// requests, nothing else; so does an error of the cache. It may be called by any
// number of goroutines.
type Cache interface {
	// Get returns the response under the key, or found is false.
	Get(ctx context.Context, key string) (response CachedResponse, found bool, err error)
	// Put stores a response in place of what was under its key.
	Put(ctx context.Context, key string, response CachedResponse) error
}

// cacheKey returns the key of a request, or "" if its answer is not to be kept.
// The credential is not part of it: an answer is given out only after the forge
// has said, to the credential that asks now, that it would answer the same.
func (t *Transport) cacheKey(request *http.Request) string {
	header := request.Header
	own := header.Get("If-None-Match") + header.Get("If-Modified-Since") + header.Get("Range")
	if t.options.Cache == nil || request.Method != http.MethodGet || own != "" || header.Get("Cache-Control") == "no-store" {
		return ""
	}
	address := *request.URL
	address.User, address.Fragment = nil, ""
	sum := sha256.Sum256([]byte(address.String() + "\n" + strings.Join(header.Values("Accept"), ",")))
	return t.options.Name + ":" + hex.EncodeToString(sum[:])
}

// kept looks for an earlier answer.
func (t *Transport) kept(ctx context.Context, key string) (CachedResponse, bool) {
	if key == "" {
		return CachedResponse{}, false
	}
	answer, found, err := t.options.Cache.Get(ctx, key)
	if err != nil {
		t.options.Log.Warn("cannot read the cache of answers", "forge", t.options.Name, "error", err)
		return CachedResponse{}, false
	}
	return answer, found
}

// keep stores an answer if it can be asked for conditionally and is sound.
func (t *Transport) keep(ctx context.Context, key string, answer *http.Response, body []byte) {
	header := answer.Header
	validated := header.Get("ETag") != "" || header.Get("Last-Modified") != ""
	if key == "" || answer.StatusCode != http.StatusOK || !validated || !keepable(header, body) {
		return
	}
	kept := CachedResponse{
		ETag: header.Get("ETag"), LastModified: header.Get("Last-Modified"),
		Status: answer.StatusCode, Header: lasting(header), Body: body, StoredAt: t.options.Clock.Now(),
	}
	// The client has its answer; that it goes away now is no reason to lose it.
	if err := t.options.Cache.Put(context.WithoutCancel(ctx), key, kept); err != nil {
		t.options.Log.Warn("cannot write the cache of answers", "forge", t.options.Name, "error", err)
	}
}

// keepable reports whether an answer may be kept. JSON that breaks off would be
// confirmed by every 304 from then on, so it is not.
func keepable(header http.Header, body []byte) bool {
	if strings.Contains(header.Get("Cache-Control"), "no-store") || header.Get("Vary") == "*" {
		return false
	}
	kind, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	isJSON := err == nil && (kind == "application/json" || strings.HasSuffix(kind, "+json"))
	return !isJSON || json.Valid(body)
}

// lasting returns the headers that hold for a later answer too.
func lasting(header http.Header) http.Header {
	header = header.Clone()
	for _, name := range []string{"Set-Cookie", "Connection", "Keep-Alive", "Transfer-Encoding", "Trailer", "Date", "Retry-After"} {
		header.Del(name)
	}
	for name := range header {
		if strings.Contains(strings.ToLower(name), "ratelimit-") {
			header.Del(name)
		}
	}
	return header
}

// condition returns the request with the condition that the answer has changed.
func (a CachedResponse) condition(request *http.Request) *http.Request {
	request = request.Clone(request.Context())
	if a.ETag != "" {
		request.Header.Set("If-None-Match", a.ETag)
	}
	if a.LastModified != "" {
		request.Header.Set("If-Modified-Since", a.LastModified)
	}
	return request
}

// response is the kept response, with the newer headers of the 304 that confirms it.
func (a CachedResponse) response(request *http.Request, confirmation *http.Response) *http.Response {
	_ = confirmation.Body.Close()
	header := a.Header.Clone()
	if header == nil {
		header = http.Header{}
	}
	for name, values := range confirmation.Header {
		if name != "Content-Length" && name != "Content-Type" && name != "Content-Encoding" {
			header[name] = values
		}
	}
	header.Set("Content-Length", strconv.Itoa(len(a.Body)))
	return &http.Response{
		Status:     strconv.Itoa(a.Status) + " " + http.StatusText(a.Status),
		StatusCode: a.Status,
		Proto:      confirmation.Proto, ProtoMajor: confirmation.ProtoMajor, ProtoMinor: confirmation.ProtoMinor,
		Header:        header,
		Body:          io.NopCloser(bytes.NewReader(a.Body)),
		ContentLength: int64(len(a.Body)),
		Request:       request,
		TLS:           confirmation.TLS,
	}
}
