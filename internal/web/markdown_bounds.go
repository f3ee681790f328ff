package web

import (
	"bytes"
	"container/list"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/toryo-dev/toryo/internal/forge"
)

// What is read as Markdown. The time that the reader takes for some texts grows with
// the square of their length and more, so that what makes it grow is counted first.
// People's texts are far below this; what is above is shown as it is.
const (
	maxMarkdown   = 64 << 10  // bytes; GitHub's comments have no more
	maxTargets    = 20 << 20  // of links, times the bytes of the text: each is looked for to its end
	maxEmphasis   = 8000      // characters that may begin or end it
	maxCells      = 20_000    // of tables: each row has as many as the first
	maxMarkup     = 512 << 10 // bytes of the page that is made of one text
	maxPageSource = 256 << 10 // bytes of texts that are not known yet, on one page
)

// readable says whether a text can be read as Markdown in little time.
func readable(source string) bool {
	if len(source) > maxMarkdown || forge.Costly(source) {
		return false
	}
	lines, pipes, emphasis := 0, 0, 0
	for line := range strings.SplitSeq(source, "\n") {
		lines++
		pipes = max(pipes, strings.Count(line, "|"))
	}
	for i := range len(source) {
		switch source[i] {
		case '*', '_', '~':
			emphasis++
		}
	}
	targets := strings.Count(source, "](") + strings.Count(source, "][")
	if strings.Contains(source, "]:") {
		targets = strings.Count(source, "[") // each may be replaced by what is defined
	}
	return pipes*lines <= maxCells && emphasis <= maxEmphasis && targets*len(source) <= maxTargets
}

var errTooMuch = errors.New("the page of the text is too large")

// shortBuffer is a buffer with an end.
type shortBuffer struct{ bytes.Buffer }

func (s *shortBuffer) Write(p []byte) (int, error) {
	if s.Len()+len(p) > maxMarkup {
		return 0, errTooMuch
	}
	return s.Buffer.Write(p)
}

// pageSource counts what is read as Markdown for one page.
type pageSource struct{ left atomic.Int64 }

type pageSourceKey struct{}

// withPageSource begins the count.
func withPageSource(ctx context.Context) context.Context {
	count := new(pageSource)
	count.left.Store(maxPageSource)
	return context.WithValue(ctx, pageSourceKey{}, count)
}

// affords says whether the page may have one more text that is not known yet.
func affords(ctx context.Context, source string) bool {
	count, is := ctx.Value(pageSourceKey{}).(*pageSource)
	return !is || count.left.Add(-int64(len(source))) >= 0
}

// readers bounds how many processors are used for reading Markdown at once.
var readers = sync.OnceValue(func() chan struct{} { return make(chan struct{}, max(1, runtime.NumCPU()/2)) })

// markup makes a page of a text, or says that it is to be shown as it is.
func markup(source string) (html []byte, fine bool) {
	if !readable(source) {
		return nil, false
	}
	readers() <- struct{}{}
	defer func() { <-readers() }()
	var made shortBuffer
	if reader().Convert([]byte(source), &made) != nil {
		return nil, false
	}
	return sieve().SanitizeBytes(made.Bytes()), true
}

// maxKnown is how many bytes of pages are kept, so that a text is read once and not
// for every reader.
const maxKnown = 16 << 20

// known keeps what was made of texts, the last that were looked at.
type known struct {
	mutex sync.Mutex
	size  int
	order list.List // of *knownText, the last first
	texts map[[sha256.Size]byte]*list.Element
}

type knownText struct {
	key  [sha256.Size]byte
	html []byte
	fine bool
}

func (k *known) get(key [sha256.Size]byte) (*knownText, bool) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	found := k.texts[key]
	if found == nil {
		return nil, false
	}
	k.order.MoveToFront(found)
	text, is := found.Value.(*knownText)
	return text, is
}

func (k *known) put(text *knownText) {
	const each = 200 // bytes that an entry takes besides
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if k.texts == nil {
		k.texts = make(map[[sha256.Size]byte]*list.Element)
	}
	if k.texts[text.key] != nil {
		return
	}
	k.texts[text.key] = k.order.PushFront(text)
	k.size += len(text.html) + each
	for k.size > maxKnown {
		last, _ := k.order.Remove(k.order.Back()).(*knownText)
		delete(k.texts, last.key)
		k.size -= len(last.html) + each
	}
}

// pages is what was made of texts, in this process.
var pages known

// writeMarkdown writes a text as a page, or as it is.
func writeMarkdown(ctx context.Context, w io.Writer, source string) error {
	if len(source) > maxMarkdown {
		return writePlain(w, source)
	}
	key := sha256.Sum256([]byte(source))
	text, found := pages.get(key)
	if !found {
		if !affords(ctx, source) {
			return writePlain(w, source)
		}
		html, fine := markup(source)
		text = &knownText{key: key, html: html, fine: fine}
		pages.put(text)
	}
	if !text.fine {
		return writePlain(w, source)
	}
	_, err := w.Write(text.html)
	return err
}
