package images

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"
	"time"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/sandbox/egress"
	"github.com/toryo-dev/toryo/internal/task"
)

// The bounds.
const (
	MostBytes       = 3 << 20  // of one image; in Base64 it stays below what every vendor takes
	mostBytesInAll  = 12 << 20 // of the images of a task
	mostInText      = 4        // images of one text
	mostInTask      = 8
	mostRedirects   = 3
	fetchWithin     = 15 * time.Second // for one image
	fetchAllWithin  = 45 * time.Second
	dialWithin      = 5 * time.Second
	foreignPort     = "443"
	longestLocation = 4096
)

// Image is an image of a text.
type Image struct {
	Link          string // as it is written in the text
	Hash          string // SHA-256, in hexadecimal
	Type          string
	Width, Height int
	Data          []byte
}

// Text is a text with images, of somebody who may steer the work on the item.
type Text struct {
	Repository string
	Body       string
	Forge      any // that it is on; a [forge.Attachments] reads its own files
}

// Fetcher reads images. The zero value is ready.
type Fetcher struct {
	// transport is of tests; nil means one that reaches public addresses only.
	transport http.RoundTripper
}

// Fetch reads the images of texts, as far as they can be read and the bounds allow. What cannot be
// read is given to skipped with the reason.
func (f Fetcher) Fetch(ctx context.Context, texts []Text, skipped func(link string, err error)) []Image {
	ctx, cancel := context.WithTimeout(ctx, fetchAllWithin)
	defer cancel()
	var found []Image
	seen := map[string]bool{}
	room := mostBytesInAll
	for _, text := range texts {
		links := Links(text.Body)
		for _, link := range links[:min(len(links), mostInText)] {
			if seen[link] {
				continue
			}
			if seen[link] = true; len(found) == mostInTask || ctx.Err() != nil {
				return found
			}
			image, err := f.one(ctx, text, link)
			if err == nil && len(image.Data) > room {
				err = task.Errorf(task.TooLarge, "the images of the task have more than %d bytes", mostBytesInAll)
			}
			if err != nil {
				skipped(link, err)
				continue
			}
			room -= len(image.Data)
			found = append(found, image)
		}
	}
	return found
}

// one reads one image.
func (f Fetcher) one(ctx context.Context, text Text, link string) (Image, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchWithin)
	defer cancel()
	address := addressOf(link)
	var data []byte
	own, is := text.Forge.(forge.Attachments)
	if is {
		attachment, err := own.Attachment(ctx, text.Repository, address, MostBytes)
		if err != nil {
			return Image{}, err
		}
		is, data = attachment.Own && attachment.Location == "", attachment.Data
		if attachment.Location != "" {
			address = attachment.Location
		}
	}
	if !is {
		var err error
		if data, err = f.foreign(ctx, address); err != nil {
			return Image{}, err
		}
	}
	h, err := readImage(ctx, data)
	if err != nil {
		return Image{}, err
	}
	sum := sha256.Sum256(data)
	return Image{Link: link, Hash: hex.EncodeToString(sum[:]), Type: h.kind, Width: h.width, Height: h.height, Data: data}, nil
}

// foreign reads a file from anywhere, without any credential.
func (f Fetcher) foreign(ctx context.Context, address string) ([]byte, error) {
	parsed, err := url.Parse(address)
	if err != nil || len(address) > longestLocation {
		return nil, task.Errorf(task.Invalid, "its address cannot be read")
	}
	if err := mayAsk(parsed); err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, parsed.String(), http.NoBody)
	if err != nil {
		return nil, task.Errorf(task.Invalid, "its address cannot be read")
	}
	request.Header.Set("User-Agent", "toryo")
	request.Header.Set("Accept", "image/png,image/jpeg,image/webp,image/gif")
	transport := f.transport
	if transport == nil {
		own := publicTransport()
		defer own.CloseIdleConnections()
		transport = own
	}
	client := http.Client{Transport: transport, Timeout: fetchWithin, CheckRedirect: func(next *http.Request, before []*http.Request) error {
		if len(before) > mostRedirects {
			return task.Errorf(task.Invalid, "it is redirected too often")
		}
		next.Header.Del("Referer") // the address before may have a signature in it
		return mayAsk(next.URL)
	}}
	answer, err := client.Do(request)
	if err != nil {
		// Without the address, which may have a signature in it that is as good as a password.
		if wrapped, ok := errors.AsType[*url.Error](err); ok {
			err = wrapped.Err
		}
		return nil, task.Wrap(task.Unavailable, err, "it cannot be read from "+parsed.Host)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return nil, task.Errorf(task.NotFound, "%s answers with status %d", parsed.Host, answer.StatusCode)
	}
	return ReadBounded(answer.Body, MostBytes)
}

// ReadBounded reads all of it, or fails with TooLarge after most bytes.
func ReadBounded(from io.Reader, most int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(from, most+1))
	if err != nil {
		return nil, task.Wrap(task.Unavailable, err, "it did not come whole")
	}
	if int64(len(data)) > most {
		return nil, task.Errorf(task.TooLarge, "it has more than %d bytes", most)
	}
	return data, nil
}

// mayAsk decides on an address before it is asked. Where its name leads is decided when it is
// dialled.
func mayAsk(address *url.URL) error {
	if address.Scheme != "https" || address.Hostname() == "" || address.User != nil {
		return task.Errorf(task.Forbidden, "only https addresses without credentials are read")
	}
	if port := address.Port(); port != "" && port != foreignPort {
		return task.Errorf(task.Forbidden, "port %s is not asked", port)
	}
	return nil
}

// publicTransport connects to public addresses only, and never through a proxy: a proxy would
// resolve names by itself.
func publicTransport() *http.Transport {
	dialer := net.Dialer{Timeout: dialWithin, Control: func(_, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("read the address to connect to: %w", err)
		}
		return egress.MayReach(to.Addr(), egress.Unlisted)
	}}
	return &http.Transport{DialContext: dialer.DialContext, TLSHandshakeTimeout: dialWithin, ResponseHeaderTimeout: fetchWithin,
		MaxResponseHeaderBytes: 64 << 10, DisableKeepAlives: true, DisableCompression: true}
}
