package web

import (
	"errors"
	"mime"
	"net/http"
	"strings"

	"github.com/toryo-dev/toryo/internal/task"
)

const (
	// maxForm is the most that is read of what a form sends, and maxStrangersForm of
	// one that someone sends who is not signed in.
	maxForm          = 1 << 20
	maxStrangersForm = 16 << 10
	// maxText is how many bytes a text may have that a person writes.
	maxText = 256 << 10
	// manyField is the one field that a form may have several times: the rows of a list that are
	// picked.
	manyField = "pick"
	// maxValues is how many fields a form may have.
	maxValues = 50
)

// formFields are the fields of all forms, with how many bytes each may have. A form
// with another field is refused, so that a new one has to be added here.
var formFields = map[string]int{
	"login": 240, "password": 4000, "next": 2000, "language": 20, "theme": 20,
	"name": 400, "role": 20, "id": 200, "repeat": 200,
	"title": 1000, "label": 400, "labels": 4000, "body": maxText, "content": maxText,
	"head": 400, "base": 400, "draft": 20, "bot": 20, "source": 2000,
	"forge": 20, "url": 2000, "token": 4000, "owner": 240, "repositories": 8000, "webhook": 20, "organisation": 20, "account": 240,
	"provider": 20, "model": 400, "base_url": 2000, "key": 4000,
	manyField: 200, "do": 20,
	"verdict": 40, "sure": 20, "plan": 20, "commit": 100, "path": 4096, "side": 20, "line": 20,
}

// readForm reads the form of a request, and refuses one that has more than it may.
// Lines end as they do on this side, not as browsers send them.
func readForm(w http.ResponseWriter, r *http.Request, most int64) error {
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if media != "" && media != "application/x-www-form-urlencoded" {
		return task.Errorf(task.Invalid, "a form is sent as application/x-www-form-urlencoded")
	}
	r.Body = http.MaxBytesReader(w, r.Body, most)
	var tooLarge *http.MaxBytesError
	switch err := r.ParseForm(); {
	case errors.As(err, &tooLarge):
		return task.Wrap(task.TooLarge, err, "the form is too large")
	case err != nil:
		return task.Wrap(task.Invalid, err, "the form cannot be read")
	case len(r.PostForm) > maxValues:
		return task.Errorf(task.TooLarge, "the form has too many fields")
	}
	for name, values := range r.PostForm {
		limit, known := formFields[name]
		if !known || len(values) != 1 && name != manyField {
			return task.Errorf(task.Invalid, "the form has a field that it should not have, or one twice")
		}
		if len(values) > maxPicked {
			return task.Errorf(task.TooLarge, "%d rows are picked; %d are allowed", len(values), maxPicked)
		}
		for i := range values {
			values[i] = strings.ReplaceAll(values[i], "\r\n", "\n")
			if len(values[i]) > limit {
				return task.Errorf(task.TooLarge, "%s has %d bytes; %d are allowed", name, len(values[i]), limit)
			}
		}
	}
	return nil
}

// strangersForm answers a form of someone who need not be signed in.
func (p *Pages) strangersForm(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := readForm(w, r, maxStrangersForm); err != nil {
			p.fail(w, r, p.stranger(r), err)
			return
		}
		next(w, r)
	}
}
