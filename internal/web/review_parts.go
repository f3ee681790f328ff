package web

import (
	"slices"
	"strconv"

	"github.com/a-h/templ"

	"github.com/toryo-dev/toryo/internal/review/judge"
)

// How much of an answer is on one page, and of a conversation unless the reader wants all.
const (
	sectionBytesOnPage = 80 << 10
	sectionsOnPage     = 100
	messagesOnPage     = 20
)

// shorten leaves on the page what fits: sections from the one that is asked for on, and the
// last messages.
func (view *reviewView) shorten(asked map[string][]string) {
	first := 0
	if from := asked["from"]; len(from) == 1 {
		number, _ := strconv.Atoi(from[0]) // 0 is the first
		at := slices.IndexFunc(view.sections, func(one judge.Section) bool { return one.Number >= number })
		first = max(at, 0)
	}
	end, size := first, 0
	for end < len(view.sections) && end-first < sectionsOnPage && (size == 0 || size+len(view.sections[end].Text) <= sectionBytesOnPage) {
		size += len(view.sections[end].Text)
		end++
	}
	view.shown = view.sections[first:end]
	if len(asked["earlier"]) == 0 && len(view.said) > messagesOnPage {
		view.earlier = len(view.said) - messagesOnPage
		view.said = view.said[view.earlier:]
	}
}

// before and after are the sections with which the pages before and after this one begin, or
// 0 if there are none.
func (view *reviewView) before() int {
	first := view.firstShown()
	size, at := 0, first
	for at > 0 && first-at < sectionsOnPage && (size == 0 || size+len(view.sections[at-1].Text) <= sectionBytesOnPage) {
		at--
		size += len(view.sections[at].Text)
	}
	if at == first {
		return 0
	}
	return view.sections[at].Number
}

func (view *reviewView) after() int {
	end := view.firstShown() + len(view.shown)
	if end >= len(view.sections) {
		return 0
	}
	return view.sections[end].Number
}

// firstShown is the place of the first section on the page among all.
func (view *reviewView) firstShown() int {
	if len(view.shown) == 0 {
		return 0
	}
	return slices.IndexFunc(view.sections, func(one judge.Section) bool { return one.Number == view.shown[0].Number })
}

// page is an address of the page of the review, with the same conversation.
func (view *reviewView) page(name string, number int, anchor string) templ.SafeURL {
	address := "?" + name + "=" + strconv.Itoa(number)
	if view.thread != nil {
		address += "&thread=" + view.thread.ID
	}
	return templ.SafeURL(address + "#" + anchor)
}

// sectionLink leads to a section, which may be on another page.
func (view *reviewView) sectionLink(number int) templ.SafeURL {
	anchor := "section-" + strconv.Itoa(number)
	if slices.ContainsFunc(view.shown, func(one judge.Section) bool { return one.Number == number }) {
		return templ.SafeURL("#" + anchor)
	}
	return view.page("from", number, anchor)
}
