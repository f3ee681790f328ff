package forge

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/toryo-dev/toryo/internal/task"
)

// Attachments is implemented by the forges whose files, that people have put into texts, are read
// with our credential.
type Attachments interface {
	// Attachment reads a file that an address in a text of the repository names, of at most so
	// many bytes; a longer one is TooLarge. Of an address that is not one of the forge's own
	// files Own is false, and no request was made: our credential goes to the forge's own
	// addresses for files and nowhere else.
	Attachment(ctx context.Context, repository, address string, most int64) (Attachment, error)
}

// Attachment is a file that was put into a text.
type Attachment struct {
	Own  bool // it is one of the forge's files
	Data []byte
	// Location is where the forge says that the file is, in place of Data. It is read without
	// our credential.
	Location string
}

// ReadAttachment sends a request for a file with our credential and follows no redirection.
func ReadAttachment(client *http.Client, request *http.Request, most int64) (Attachment, error) {
	call := Call{What: "read a file of a text"}
	request.Header.Set("Cache-Control", "no-store") // nobody looks for this file again
	once := *client
	once.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	answer, err := once.Do(request)
	if err != nil {
		return Attachment{}, call.Failure(nil, err)
	}
	defer func() { _ = answer.Body.Close() }()
	switch {
	case answer.StatusCode >= 300 && answer.StatusCode < 400:
		location, err := answer.Location()
		if err != nil {
			return Attachment{}, call.Failure(answer, nil)
		}
		return Attachment{Own: true, Location: location.String()}, nil
	case answer.StatusCode != http.StatusOK:
		return Attachment{}, call.Failure(answer, nil)
	}
	data, err := io.ReadAll(io.LimitReader(answer.Body, most+1))
	if err != nil {
		return Attachment{}, call.Failure(nil, err)
	}
	if int64(len(data)) > most {
		return Attachment{}, task.Errorf(task.TooLarge, "the file has more than %d bytes", most)
	}
	return Attachment{Own: true, Data: data}, nil
}

// OwnPath is the path of an address of the site, below the site's own path, without a slash at its
// beginning. An address without a host is the site's too. Of others own is false.
func OwnPath(site *url.URL, address string) (path string, own bool) {
	parsed, err := url.Parse(address)
	if err != nil || parsed.User != nil || parsed.Opaque != "" {
		return "", false
	}
	if parsed.Host != "" && (!strings.EqualFold(parsed.Host, site.Host) || parsed.Scheme != site.Scheme) || parsed.Host == "" && (parsed.Scheme != "" || !strings.HasPrefix(parsed.Path, "/")) {
		return "", false
	}
	path = parsed.Path
	if rest, below := strings.CutPrefix(path, strings.TrimSuffix(site.Path, "/")+"/"); below {
		return rest, true
	}
	return strings.TrimPrefix(path, "/"), parsed.Host == ""
}
