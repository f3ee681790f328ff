package web

import (
	"cmp"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/toryo-dev/toryo/internal/textfmt"
)

const (
	// rowsPerPage is how many rows a page of a list has.
	rowsPerPage = 50
	// maxSearch is how many characters of a search are looked for.
	maxSearch = 200
)

// listing is how somebody looks at a list: what is searched for, what it is narrowed to, in which
// order, and which page. All of it is in the address, so that a link leads back to it.
type listing struct {
	path   string
	values url.Values // what narrows the list, without what is empty
	names  []string   // of what can narrow it
	page   int        // from 1
	rows   int        // of all pages
}

// The names in the address that every list has.
const (
	searchName = "q"
	sortName   = "sort"
	pageName   = "page"
	// beforeName says before which row a list begins that is too long to be read at once.
	beforeName = "before"
)

// mostListed is how many rows a list is made of at most, the newest. The older ones are a list of
// their own, before the last of them.
const mostListed = 5000

// readListing reads how a list is looked at. Names are what can narrow it besides the search.
func readListing(r *http.Request, names ...string) listing {
	l := listing{path: r.URL.Path, values: url.Values{}, names: names, page: 1}
	query := r.URL.Query()
	for _, name := range append([]string{searchName, sortName}, names...) {
		if value := textfmt.Shorten(strings.TrimSpace(query.Get(name)), maxSearch); value != "" {
			l.values.Set(name, value)
		}
	}
	if page, err := strconv.Atoi(query.Get(pageName)); err == nil && page > 1 {
		l.page = page
	}
	return l
}

func (l listing) get(name string) string { return l.values.Get(name) }

// search is what is searched for.
func (l listing) search() string { return l.get(searchName) }

// narrowed reports whether the reader has asked for less than all.
func (l listing) narrowed() bool {
	return slices.ContainsFunc(append([]string{searchName}, l.names...), l.values.Has)
}

// filtered reports whether the list is narrowed by something else than a search.
func (l listing) filtered() bool { return slices.ContainsFunc(l.names, l.values.Has) }

// with is the address of the list with another value of one name, from the first page on.
func (l listing) with(name, value string) string {
	values := url.Values{}
	maps.Copy(values, l.values)
	values.Del(name)
	if value != "" {
		values.Set(name, value)
	}
	return l.address(values)
}

// here is the address of the list without its page.
func (l listing) here() string { return l.address(l.values) }

func (l listing) address(values url.Values) string {
	if len(values) == 0 {
		return l.path
	}
	return l.path + "?" + values.Encode()
}

// order is the column by which the list is in order, and whether from the last to the first.
func (l listing) order() (column string, descending bool) {
	return strings.CutPrefix(l.get(sortName), "-")
}

// sortedBy is how a column stands in the words of ARIA; "" if the list is not in its order.
func (l listing) sortedBy(column string) string {
	by, descending := l.order()
	switch {
	case by != column:
		return ""
	case descending:
		return "descending"
	default:
		return "ascending"
	}
}

// sortAddress is the address of the list in the order of a column, or the other way round if it
// is in that order.
func (l listing) sortAddress(column string) string {
	if l.sortedBy(column) == "ascending" {
		return l.with(sortName, "-"+column)
	}
	return l.with(sortName, column)
}

// pages is how many pages there are.
func (l listing) pages() int { return max(1, (l.rows+rowsPerPage-1)/rowsPerPage) }

// onPage is the address of the page that the reader is on.
func (l listing) onPage() string { return l.pageAddress(l.page) }

// pageAddress is the address of another page.
func (l listing) pageAddress(page int) string {
	if page <= 1 {
		return l.here()
	}
	return l.with(pageName, strconv.Itoa(page))
}

// first and last are the numbers of the rows of the page, from 1.
func (l listing) first() int { return min(l.rows, (l.page-1)*rowsPerPage+1) }
func (l listing) last() int  { return min(l.rows, l.page*rowsPerPage) }

// columns compare rows by the columns of a list.
type columns[T any] map[string]func(a, b T) int

// inOrder puts rows in the order that the reader has chosen, and otherwise leaves them as they
// are.
func inOrder[T any](l listing, rows []T, by columns[T]) {
	column, descending := l.order()
	compare, known := by[column]
	if !known {
		return
	}
	slices.SortStableFunc(rows, func(a, b T) int {
		if descending {
			return compare(b, a)
		}
		return compare(a, b)
	})
}

// pageOf is the rows of the page that the reader is on, and of the last one if that is not
// there.
func pageOf[T any](l *listing, rows []T) []T {
	l.rows = len(rows)
	l.page = min(l.page, l.pages())
	return rows[(l.page-1)*rowsPerPage : min(l.rows, l.page*rowsPerPage)]
}

// contains reports whether each word of a search is in one of the texts, whatever the case of
// the letters.
func contains(search string, texts ...string) bool {
	if search == "" {
		return true
	}
	text := strings.ToLower(strings.Join(texts, "\n"))
	for word := range strings.FieldsSeq(strings.ToLower(search)) {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}

// byText compares rows by a text of theirs, whatever the case of the letters.
func byText[T any](of func(T) string) func(a, b T) int {
	return func(a, b T) int { return cmp.Compare(strings.ToLower(of(a)), strings.ToLower(of(b))) }
}

// byTime compares rows by a time of theirs.
func byTime[T any](of func(T) timeOf) func(a, b T) int {
	return func(a, b T) int { return of(a).Compare(of(b)) }
}
