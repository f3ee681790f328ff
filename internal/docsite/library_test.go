package docsite

import (
	"errors"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/yuin/goldmark/ast"
	markup "github.com/yuin/goldmark/extension/ast"

	"github.com/toryo-dev/toryo/docs"
	"github.com/toryo-dev/toryo/internal/task"
)

var both = []task.Language{task.English, task.Japanese}

func library(t *testing.T, language task.Language) *Library {
	t.Helper()
	l, err := In(language)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// files makes the files of a small documentation.
func files(texts map[string]string) fstest.MapFS {
	made := make(fstest.MapFS)
	for name, text := range texts {
		made[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return made
}

func read(t *testing.T, language task.Language, texts map[string]string) *Library {
	t.Helper()
	l, err := Read(files(texts), language)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Every page can be read in every language, is in the list, and is reached by turning pages.
func TestEveryPage(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(names) < 20 {
		t.Fatalf("the documentation has %d files, %v", len(names), err)
	}
	for _, language := range both {
		l := library(t, language)
		if len(l.unlisted) > 0 {
			t.Errorf("%s: README%s does not list %q", language, extension, l.unlisted)
		}
		var turned []string
		for page := l.pages[""]; page != nil; page = page.Next {
			turned = append(turned, page.Name)
			if page.Title == "" || page.Title == page.Name || !strings.Contains(page.HTML, "<h1") {
				t.Errorf("%s: the page %q has no title", language, page.Name)
			}
			if strings.Contains(outsideCode(page.HTML), "**") {
				t.Errorf("%s: on the page %q there are asterisks that mark nothing", language, page.Name)
			}
			if strings.Contains(page.HTML, "raw HTML omitted") {
				t.Errorf("%s: the page %q has markup", language, page.Name)
			}
		}
		for _, file := range names {
			name := strings.TrimSuffix(filepath.Base(file), extension)
			if name == index {
				name = ""
			}
			if !slices.Contains(turned, name) {
				t.Errorf("%s: nobody turns to %q", language, name)
			}
		}
	}
}

var code = regexp.MustCompile(`(?s)<pre.*?</pre>|<code>.*?</code>`)

func outsideCode(html string) string { return code.ReplaceAllString(html, "") }

// What a new user reads is there in Japanese.
func TestTranslatedPages(t *testing.T) {
	t.Parallel()
	l := library(t, task.Japanese)
	for _, name := range []string{"", "first-day", "signals", "environments", "reviews"} {
		if page, found := l.Page(name); !found || page.Language != task.Japanese {
			t.Errorf("the page %q is in %v", name, page)
		}
	}
	if page, _ := l.Page("forges"); page == nil || page.Language != task.English {
		t.Errorf("a page without a translation is %v", page)
	}
}

// shape is what a translation has in common with its original: its headings, code blocks, tables
// and lists in their order, and at the end of each part of the page the code in its sentences, which
// have another order in another language.
func (s *source) shape() []string {
	var shape []string
	inLines := make(map[string]bool)
	end := func() {
		shape = append(shape, strings.Join(slices.Sorted(maps.Keys(inLines)), ", "))
		clear(inLines)
	}
	_ = ast.Walk(s.document, func(node ast.Node, entering bool) (ast.WalkStatus, error) { // never fails
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := node.(type) {
		case *ast.Heading:
			end()
			shape = append(shape, strings.Repeat("#", n.Level))
		case *ast.CodeBlock, *ast.FencedCodeBlock:
			shape = append(shape, withoutRemarks(string(node.Lines().Value(s.text))))
		case *ast.List, *ast.ListItem, *markup.TableRow, *ast.Image:
			shape = append(shape, node.Kind().String())
		case *ast.CodeSpan:
			inLines[textOf(n, s.text)] = true
		}
		return ast.WalkContinue, nil
	})
	end()
	return shape
}

var remark = regexp.MustCompile(`(?m)(^|\s+)#.*$`)

// withoutRemarks is code without what it says to people, which is translated.
func withoutRemarks(code string) string { return remark.ReplaceAllString(code, "") }

// A translation has all that the English page has.
func TestTranslationsAreWhole(t *testing.T) {
	t.Parallel()
	original, err := readShelf(docs.Files, task.English)
	if err != nil {
		t.Fatal(err)
	}
	translated, err := readShelf(docs.Files, task.Japanese)
	if err != nil {
		t.Fatal(err)
	}
	for name, one := range translated.pages {
		want, got := original.pages[name].shape(), one.shape()
		for i := range max(len(want), len(got)) {
			if i >= len(want) || i >= len(got) || want[i] != got[i] {
				t.Errorf("%s: part %d of %d is %q, and of the English page with %d %q", one.file, i, len(got), at(got, i), len(want), at(want, i))
				break
			}
		}
	}
}

func at(texts []string, i int) string {
	if i < len(texts) {
		return texts[i]
	}
	return ""
}

// Every relative link in a Markdown file of the repository leads to a file, and to a heading
// that it has.
func TestLinksInFiles(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	sources := make(map[string]*source)
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range found {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			name, err := filepath.Rel(root, file)
			if err != nil {
				t.Fatal(err)
			}
			sources[filepath.ToSlash(name)] = parse(filepath.ToSlash(name), name, task.English, text)
		}
	}
	for _, s := range sources {
		each(s.document, func(link *ast.Link) { checkLink(t, root, s, string(link.Destination), sources) })
		each(s.document, func(image *ast.Image) { checkLink(t, root, s, string(image.Destination), sources) })
	}
}

func checkLink(t *testing.T, root string, s *source, destination string, sources map[string]*source) {
	t.Helper()
	if strings.Contains(destination, "://") {
		return
	}
	name, fragment, _ := strings.Cut(destination, "#")
	file := s.file
	if name != "" {
		file = path.Join(path.Dir(s.file), name)
	}
	if _, err := os.Stat(filepath.Join(root, file)); err != nil {
		t.Errorf("%s: %s leads nowhere", s.file, destination)
	}
	if to := sources[file]; fragment != "" && (to == nil || to.anchors[fragment] == "") {
		t.Errorf("%s: %s leads to no heading", s.file, destination)
	}
}

// What is wrong with the files is said when they are read.
func TestWrongFiles(t *testing.T) {
	t.Parallel()
	good := map[string]string{"README.md": "# Docs\n\n## All\n\n- [a](a.md)\n", "a.md": "# A\n\n## Part\n", "ja/a.md": "# あ\n\n## 部分\n"}
	read(t, task.Japanese, good)
	for name, test := range map[string]struct {
		file, text string
		want       string
	}{
		"page":        {"a.md", "# A\n\n[b](b.md)\n\n## Part", "a.md: b.md leads nowhere"},
		"heading":     {"a.md", "# A\n\n[b](#other)\n\n## Part", "a.md: #other leads to no heading"},
		"image":       {"a.md", "# A\n\n![b](images/b.png)\n\n## Part", "a.md: the image images/b.png is not there"},
		"beside":      {"ja/a.md", "# あ\n\n[い](b.md)\n\n## 部分\n", "ja/a.md: b.md leads nowhere"},
		"translation": {"ja/a.md", "# あ\n", "ja/a.md has 1 headings, and a.md has 2"},
		"level":       {"ja/a.md", "# あ\n\n### 部分\n", "is of level 3, and that of a.md is of level 2"},
		"original":    {"ja/b.md", "# い\n", "ja/b.md is the translation of no page"},
	} {
		texts := maps.Clone(good)
		texts[test.file] = test.text
		_, inEnglish := Read(files(texts), task.English)
		_, inJapanese := Read(files(texts), task.Japanese)
		if err := errors.Join(inEnglish, inJapanese); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A page that the index does not list is the last one, and the others are there.
func TestUnlistedPage(t *testing.T) {
	t.Parallel()
	for name, list := range map[string]string{"one is listed": "# Docs\n\n## All\n\n- [b](b.md)\n", "there is no list": "# Docs\n"} {
		l := read(t, task.English, map[string]string{"README.md": list, "a.md": "# A\n\nThe gate.\n", "b.md": "# B\n"})
		listed := make(map[string]bool)
		for _, group := range l.Groups {
			for _, page := range group.Pages {
				listed[page.Name] = true
			}
		}
		if !listed["a"] || !listed["b"] || !slices.Contains(l.unlisted, "a") {
			t.Errorf("%s: the list is %v, without %q", name, l.Groups, l.unlisted)
		}
		if found := paths(l.Search("gate")); !slices.Equal(found, []string{"/docs/a"}) {
			t.Errorf("%s: the search finds %q", name, found)
		}
	}
	l := read(t, task.English, map[string]string{"README.md": "# Docs\n\n## All\n\n- [b](b.md)\n", "a.md": "# A\n", "b.md": "# B\n"})
	if page, _ := l.Page("b"); page.Next == nil || page.Next.Name != "a" || l.pages[""].Next != page {
		t.Errorf("behind the page that is listed comes %v", page.Next)
	}
}

// Links lead from page to page; a heading has one anchor in all languages; what is not on the
// server is no link; markup in a file is left out.
func TestPagesOfFiles(t *testing.T) {
	t.Parallel()
	texts := map[string]string{
		"README.md":    "# Docs\n\n## All\n\n- [a](a.md)\n- [b](b.md)\n",
		"a.md":         "# A\n\n## The part\n\n[b](b.md#on-the-server) [here](#the-part) [code](../internal/x.go) [far](https://example.org/x)\n\n<script>alert(1)</script>\n\n[bad](javascript:alert(1))\n\n![picture](images/p.png)\n\n| | a |\n| - | - |\n| b | c |\n\n| | |\n| - | - |\n| d | e |\n\n3. third\n\n## The part\n",
		"b.md":         "# B\n\n## On the `server`?\n",
		"ja/a.md":      "# あ\n\n## その部分\n\n[い](../b.md#on-the-server) [ここ](#その部分) [目次](README.md)\n\n## その部分\n",
		"ja/README.md": "# 文書\n\n## すべて\n\n- [あ](a.md)\n- [b](../b.md)\n",
		"images/p.png": "picture",
	}
	english, japanese := read(t, task.English, texts), read(t, task.Japanese, texts)
	page, _ := english.Page("a")
	for _, want := range []string{
		`<h2 id="the-part"><a href="#the-part">The part</a></h2>`, `<h2 id="the-part-1">`, `<a href="/docs/b#on-the-server">b</a>`, `<a href="#the-part">here</a>`,
		` code <a href="https://example.org/x"`, `<img src="/docs/images/`, `tabindex="0"><table>`, "<thead>\n<tr>\n<td></td>\n<th>a</th>\n</tr>\n</thead>", "<table>\n<tbody>\n<tr>\n<td>d</td>", `<ol start="3">`,
	} {
		if !strings.Contains(page.HTML, want) {
			t.Errorf("there is no %s in %s", want, page.HTML)
		}
	}
	for _, bad := range []string{"<script", "javascript:", "x.go"} {
		if strings.Contains(page.HTML, bad) {
			t.Errorf("there is %s in %s", bad, page.HTML)
		}
	}
	page, _ = japanese.Page("a")
	for _, want := range []string{`<h2 id="the-part"><a href="#the-part">その部分</a></h2>`, `<h2 id="the-part-1">`, `<a href="/docs/b#on-the-server">い</a>`, `<a href="#the-part">ここ</a>`, `<a href="/docs">目次</a>`} {
		if !strings.Contains(page.HTML, want) {
			t.Errorf("there is no %s in %s", want, page.HTML)
		}
	}
	if japanese.Groups[0].Title != "すべて" || len(japanese.Groups[0].Pages) != 2 || japanese.Groups[0].Pages[1].Language != task.English {
		t.Errorf("the list is %v", japanese.Groups)
	}
}
