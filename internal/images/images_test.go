package images

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/jpeg"
	"image/png"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/sandbox/egress"
	"github.com/toryo-dev/toryo/internal/task"
)

func TestLinks(t *testing.T) {
	t.Parallel()
	text := "![a](https://x.example/a.png \"title\") and ![b](/uploads/b(1).png)\n" +
		"<img width=\"10\" src=\"https://x.example/c.png\">\n" +
		"`![no](https://x.example/code.png)`\n\n```md\n![no](https://x.example/fence.png)\n```\n\n    ![no](https://x.example/indented.png)\n" +
		"<!-- ![no](https://x.example/hidden.png) -->\n[no](https://x.example/link.png) ![a](https://x.example/a.png)\n"
	want := []string{"https://x.example/a.png", "/uploads/b(1).png", "https://x.example/c.png"}
	if got := Links(text); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func onePixel(t *testing.T) []byte {
	t.Helper()
	var data bytes.Buffer
	if err := png.Encode(&data, image.NewRGBA(image.Rect(0, 0, 3, 2))); err != nil {
		t.Fatal(err)
	}
	return data.Bytes()
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func answer(r *http.Request, status int, header http.Header, body io.Reader) *http.Response {
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(body), Request: r}
}

// endless is a body of any length; it counts what is read of it.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	e.read += len(p)
	return len(p), nil
}

func fetchOne(f Fetcher, link string) ([]Image, error) {
	var failed error
	found := f.Fetch(context.Background(), []Text{{Repository: "a/b", Body: "![x](" + link + ")"}}, func(_ string, err error) { failed = err })
	return found, failed
}

func TestFetchTellsImagesByTheirBytes(t *testing.T) {
	t.Parallel()
	data := onePixel(t)
	broken := bytes.Clone(data)
	broken[len(broken)-20] ^= 0xff
	for name, body := range map[string][]byte{"image": data, "cut": data[:len(data)-30], "broken": broken, "cut WebP": []byte("RIFF\xff\x00\x00\x00WEBPVP8X" + strings.Repeat("\x00", 20)), "svg": []byte(`<svg xmlns="http://www.w3.org/2000/svg"/>`), "page": []byte("<html>")} {
		f := Fetcher{transport: transport(func(r *http.Request) (*http.Response, error) {
			if r.Header.Get("Authorization") != "" || r.Header.Get("Cookie") != "" {
				t.Error("a credential was sent to a foreign host")
			}
			return answer(r, 200, http.Header{"Content-Type": {"image/png"}}, bytes.NewReader(body)), nil
		})}
		found, err := fetchOne(f, "https://x.example/a.png")
		if name != "image" {
			if len(found) != 0 || task.CodeOf(err) != task.Invalid {
				t.Errorf("%s: got %d images, %v", name, len(found), err)
			}
			continue
		}
		if len(found) != 1 || found[0].Type != "image/png" || found[0].Width != 3 || found[0].Height != 2 || !bytes.Equal(found[0].Data, data) {
			t.Errorf("got %+v, %v", found, err)
		}
	}
}

// scans is a progressive JPEG of 4096×4096 pixels. Each scan has 40 bytes and goes through all blocks.
func scans(n int) []byte {
	const (
		start  = "\xff\xd8\xff\xc2\x00\x0b\x08\x10\x00\x10\x00\x01\x01\x11\x00"                                       // one component
		tables = "\xff\xc4\x00\x14\x10\x01" + "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00" + "\xe0" // the bit 0 is a run of 1<<14 empty blocks and 14 bits more
		scan   = "\xff\xda\x00\x08\x01\x01\x00\x01\x3f\x00"
	)
	run := strings.Repeat("\x00", 30) // 16 times the bit and 14 bits of 0: 262144 blocks
	return []byte(start + tables + strings.Repeat(scan+run, n) + "\xff\xd9")
}

// A JPEG may have so many scans that decoding it takes an hour. It is not decoded.
func TestJPEGsAreNotDecoded(t *testing.T) {
	t.Parallel()
	var ordinary bytes.Buffer
	if err := jpeg.Encode(&ordinary, image.NewRGBA(image.Rect(0, 0, 30, 20)), nil); err != nil {
		t.Fatal(err)
	}
	cut := ordinary.Bytes()[:ordinary.Len()-2]
	for name, c := range map[string]struct {
		data []byte
		want task.Code
	}{
		"ordinary": {ordinary.Bytes(), ""}, "progressive": {scans(10), ""}, "an hour": {scans(MostBytes / 40), task.TooLarge},
		"cut": {cut, task.Invalid}, "cut in a table": {ordinary.Bytes()[:300], task.Invalid}, "cut in a marker": {append(bytes.Clone(cut), 0xff), task.Invalid},
	} {
		if h, err := readImage(t.Context(), c.data); task.CodeOf(err) != c.want || h.kind != "image/jpeg" && c.want == "" {
			t.Errorf("%s: %+v, %v", name, h, err)
		}
	}
	if _, err := jpeg.Decode(bytes.NewReader(scans(1))); err != nil {
		t.Errorf("the file of this test is broken: %v", err)
	}
}

// Who waits for the decoding of another image waits no longer than the request is there.
func TestWaitingForOthersEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	decoding <- struct{}{}
	defer func() { <-decoding }()
	if _, err := readImage(ctx, onePixel(t)); task.CodeOf(err) != task.Unavailable || !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestFetchCutsLongBodies(t *testing.T) {
	t.Parallel()
	body := &endless{}
	f := Fetcher{transport: transport(func(r *http.Request) (*http.Response, error) {
		return answer(r, 200, http.Header{}, io.LimitReader(body, 200<<20)), nil
	})}
	found, err := fetchOne(f, "https://x.example/a.png")
	if len(found) != 0 || task.CodeOf(err) != task.TooLarge || body.read > 2*MostBytes {
		t.Errorf("got %d images, %v, after %d bytes", len(found), err, body.read)
	}
}

// Neither an address in a text nor one that an answer redirects to leads elsewhere than to
// public addresses by HTTPS.
func TestFetchRefusesOtherAddresses(t *testing.T) {
	t.Parallel()
	for _, link := range []string{"http://x.example/a.png", "https://user:pass@x.example/a.png", "https://x.example:8443/a.png", "file:///etc/passwd", "/relative.png"} {
		f := Fetcher{transport: transport(func(*http.Request) (*http.Response, error) {
			t.Errorf("%s was asked", link)
			return nil, errors.New("asked")
		})}
		if found, err := fetchOne(f, link); len(found) != 0 || task.CodeOf(err) != task.Forbidden {
			t.Errorf("%s: %d images, %v", link, len(found), err)
		}
	}
	for _, link := range []string{"https://169.254.169.254/a.png", "https://127.0.0.1/a.png", "https://[::1]/a.png", "https://10.0.0.1/a.png", "https://localhost/a.png"} {
		if found, err := fetchOne(Fetcher{}, link); len(found) != 0 || err == nil || !strings.Contains(err.Error(), "the network policy of the sandbox does not allow this") {
			t.Errorf("%s: %d images, %v", link, len(found), err)
		}
	}
	if egress.MayReach(netip.MustParseAddr("169.254.169.254"), egress.Unlisted) == nil {
		t.Error("the address of metadata may be reached")
	}
}

// A redirection is dialled through the same check as the first address.
func TestFetchRefusesARedirectionInside(t *testing.T) {
	t.Parallel()
	public := publicTransport()
	f := Fetcher{transport: transport(func(r *http.Request) (*http.Response, error) {
		if r.URL.Host == "x.example" {
			return answer(r, 302, http.Header{"Location": {"https://169.254.169.254/latest/meta-data"}}, http.NoBody), nil
		}
		return public.RoundTrip(r)
	})}
	if found, err := fetchOne(f, "https://x.example/a.png"); len(found) != 0 || err == nil || !strings.Contains(err.Error(), "policy") {
		t.Errorf("got %d images, %v", len(found), err)
	}
}

// What is said of an image that cannot be read has no address in it: that may be signed.
func TestFailuresTellNoAddresses(t *testing.T) {
	t.Parallel()
	for name, failing := range map[string]transport{
		"at once": func(*http.Request) (*http.Response, error) { return nil, errors.New("reset") },
		"after a redirection": func(r *http.Request) (*http.Response, error) {
			if r.URL.Host == "y.example" {
				return nil, errors.New("reset")
			}
			return answer(r, 302, http.Header{"Location": {"https://y.example/a?X-Amz-Signature=secret"}}, http.NoBody), nil
		},
		"refused": func(r *http.Request) (*http.Response, error) {
			return answer(r, 302, http.Header{"Location": {"http://y.example/a?X-Amz-Signature=secret"}}, http.NoBody), nil
		},
	} {
		_, err := fetchOne(Fetcher{transport: failing}, "https://x.example/a.png?jwt=secret")
		if err == nil || strings.Contains(fmt.Sprintf("%v %+v", err, err), "secret") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
