package web

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

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
	// maxUpload is the most that is read of a form with files.
	maxUpload = 12 << 20
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
	"question": 1 << 20, "question_id": 200, "purpose": 1 << 20, "grading": 1 << 20, "answer": 4 << 20, "answer_file": 4 << 20,
	"judge": 20, "judgement": 1 << 20, "judgement_file": 1 << 20, "person": 240, "everyone": 20,
	"repository": 2000, "text": 4000,
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
			return errOddField
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

var errOddField = task.Errorf(task.Invalid, "the form has a field that it should not have, or one twice")

// readUpload reads a form that may have files. What is in a file becomes the value of its
// field: texts in UTF-8, each as large as the field may be. One that nobody has chosen is
// not there.
func readUpload(w http.ResponseWriter, r *http.Request) error {
	if media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); media != "multipart/form-data" {
		return readForm(w, r, maxForm)
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxUpload)
	parts, err := r.MultipartReader()
	if err != nil {
		return task.Wrap(task.Invalid, err, "the form cannot be read")
	}
	r.PostForm = url.Values{}
	for len(r.PostForm) < maxValues {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return unreadable(err)
		}
		if err := readPart(part, r.PostForm); err != nil {
			return err
		}
	}
	return task.Errorf(task.TooLarge, "the form has too many fields")
}

// readPart reads one field of a form, or one file.
func readPart(part *multipart.Part, into url.Values) error {
	name := part.FormName()
	limit, known := formFields[name]
	if !known || into.Has(name) {
		return errOddField
	}
	content, err := io.ReadAll(io.LimitReader(part, int64(limit)+1))
	switch {
	case err != nil:
		return unreadable(err)
	case len(content) > limit:
		return task.Errorf(task.TooLarge, "%s has more than %d bytes, which are allowed", name, limit)
	case !utf8.Valid(content) || bytes.IndexByte(content, 0) >= 0:
		return task.Errorf(task.Invalid, "%s is not a text in UTF-8", name).WithHint("save the file as UTF-8, or paste the text")
	}
	if part.FileName() == "" && len(content) == 0 && strings.HasSuffix(name, "_file") {
		return nil
	}
	text := strings.TrimPrefix(string(content), "\uFEFF")
	into.Set(name, strings.ReplaceAll(text, "\r\n", "\n"))
	return nil
}

func unreadable(err error) error {
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return task.Wrap(task.TooLarge, err, "the form is too large")
	}
	return task.Wrap(task.Invalid, err, "the form cannot be read")
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
