package docsite

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/yuin/goldmark/ast"

	"github.com/toryo-dev/toryo/docs"
	"github.com/toryo-dev/toryo/internal/task"
)

// Root is the path of the documentation on the server.
const Root = "/docs"

const (
	extension = ".md"
	index     = "README" // the file that lists the others, and their order
)

// Library is the documentation in one language. It does not change.
type Library struct {
	// Groups are the pages, as the index lists them.
	Groups []Group

	pages    map[string]*Page
	unlisted []string         // names of pages that the index does not list
	images   map[string]Image // by their paths
	sections []section
	words    wordIndex
}

// Group is pages for the same readers.
type Group struct {
	Title string
	Pages []*Page
}

// Page is one file of the documentation.
type Page struct {
	Name     string // in its address; empty for the index
	Title    string
	Language task.Language // of its text
	HTML     string
	Headings []Heading // without the title
	// Previous and Next are the pages before and behind it; nil where there is none.
	Previous, Next *Page
}

// Heading is one of a page.
type Heading struct {
	Level    int
	ID, Text string
}

// Path is the path of the page on the server.
func (p *Page) Path() string {
	if p.Name == "" {
		return Root
	}
	return Root + "/" + p.Name
}

var (
	english  = sync.OnceValues(func() (*Library, error) { return Read(docs.Files, task.English) })
	japanese = sync.OnceValues(func() (*Library, error) { return Read(docs.Files, task.Japanese) })
)

// In returns the documentation of this program in a language. It is read at the first use.
func In(language task.Language) (*Library, error) {
	if language == task.Japanese {
		return japanese()
	}
	return english()
}

// Page returns a page by its name; the name of the index is empty.
func (l *Library) Page(name string) (page *Page, found bool) {
	page, found = l.pages[name]
	return page, found
}

// Image returns a picture by its path on the server.
func (l *Library) Image(path string) (image Image, found bool) {
	image, found = l.images[path]
	return image, found
}

// Read makes the documentation in a language of the files. Pages that have no translation
// are in English. The error names everything that is wrong with the files.
func Read(files fs.FS, language task.Language) (*Library, error) {
	shelf, err := readShelf(files, language)
	if err != nil {
		return nil, err
	}
	l := &Library{pages: make(map[string]*Page), images: make(map[string]Image)}
	var wrong []error
	for _, name := range slices.Sorted(maps.Keys(shelf.pages)) {
		s := shelf.pages[name]
		page, err := s.page(shelf, l)
		wrong = append(wrong, err)
		l.pages[s.pageName()] = page
	}
	if err := errors.Join(wrong...); err != nil {
		return nil, err
	}
	if err := l.order(shelf); err != nil {
		return nil, err
	}
	l.buildIndex(shelf)
	return l, nil
}

// order takes the order of the pages from the index. What the index does not list comes last:
// one forgotten line must not take the whole documentation from its readers. A test demands
// that all are listed.
func (l *Library) order(s *shelf) error {
	first := s.pages[index]
	if first == nil {
		return errors.New("the documentation has no " + index + extension)
	}
	listed := map[string]bool{"": true}
	for node := first.document.FirstChild(); node != nil; node = node.NextSibling() {
		if heading, is := node.(*ast.Heading); is && heading.Level == 2 {
			l.Groups = append(l.Groups, Group{Title: textOf(heading, first.text)})
		}
		if len(l.Groups) == 0 {
			continue
		}
		group := &l.Groups[len(l.Groups)-1]
		for _, name := range first.linked[node] {
			if !listed[name] {
				listed[name] = true
				group.Pages = append(group.Pages, l.pages[name])
			}
		}
	}
	l.addUnlisted(listed)
	last := l.pages[""]
	for _, group := range l.Groups {
		for _, page := range group.Pages {
			last.Next, page.Previous = page, last
			last = page
		}
	}
	return nil
}

// addUnlisted adds the pages that the index does not list to its last group.
func (l *Library) addUnlisted(listed map[string]bool) {
	for _, name := range slices.Sorted(maps.Keys(l.pages)) {
		if listed[name] {
			continue
		}
		if len(l.Groups) == 0 {
			l.Groups = append(l.Groups, Group{Title: l.pages[""].Title})
		}
		group := &l.Groups[len(l.Groups)-1]
		group.Pages = append(group.Pages, l.pages[name])
		l.unlisted = append(l.unlisted, name)
	}
}

// shelf is the files of the documentation.
type shelf struct {
	fs    fs.FS
	files map[string]*source // by their paths
	pages map[string]*source // by their names, in the language or else in English
}

// readShelf reads the files in English and in the language.
func readShelf(files fs.FS, language task.Language) (*shelf, error) {
	s := &shelf{fs: files, files: make(map[string]*source), pages: make(map[string]*source)}
	if err := s.readFolder(".", task.English); err != nil {
		return nil, err
	}
	if language == task.English {
		return s, nil
	}
	if err := s.readFolder(string(language), language); err != nil {
		return nil, err
	}
	return s, nil
}

// readFolder reads the files of one folder. They take the place of those that have the same
// name, and take over their anchors.
func (s *shelf) readFolder(folder string, language task.Language) error {
	names, err := fs.Glob(s.fs, path.Join(folder, "*"+extension))
	if err != nil {
		return err
	}
	var wrong []error
	for _, file := range names {
		text, err := fs.ReadFile(s.fs, file)
		if err != nil {
			return err
		}
		name := strings.TrimSuffix(path.Base(file), extension)
		one := parse(file, name, language, text)
		if original := s.pages[name]; original != nil {
			wrong = append(wrong, one.follow(original))
		} else if folder != "." {
			wrong = append(wrong, fmt.Errorf("%s is the translation of no page", file))
		}
		s.files[file], s.pages[name] = one, one
	}
	return errors.Join(wrong...)
}
