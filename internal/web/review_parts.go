package web

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"strconv"

	"github.com/a-h/templ"

	"github.com/toryo-dev/toryo/internal/review"
	"github.com/toryo-dev/toryo/internal/review/judge"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

// How much of a review is on one page. Bytes are those of the page, not of the text: markup
// can be many times as long.
const (
	sectionBytesOnPage  = 110 << 10
	sectionsOnPage      = 100
	longestSection      = 60 << 10
	messageBytesOnPage  = 60 << 10
	messagesOnPage      = 20
	longestMessage      = 25 << 10
	longestOverall      = 20 << 10
	remarkBytesOnPage   = 30 << 10
	longestRemark       = 8 << 10
	longestQuestion     = 12 << 10
	longestDraft        = 20 << 10
	numbersOfRemark     = 50
	longestWithoutMarks = 60 << 10
	// leastShown is what is shown of a text in any case.
	leastShown = 200
)

// fit makes a piece of a page of a text, or of as much of its beginning as takes no more than so
// many bytes. Render is told whether the text is cut.
func fit(ctx context.Context, text string, most int, render func(text string, cut bool) templ.Component) (templ.Component, int, error) {
	shown := textfmt.Clip(text, most)
	for {
		var html bytes.Buffer
		if err := render(shown, len(shown) < len(text)).Render(ctx, &html); err != nil {
			return nil, 0, err
		}
		if html.Len() <= most || len(shown) <= leastShown {
			return templ.Raw(html.String()), html.Len(), nil
		}
		shown = textfmt.Clip(shown, max(leastShown, min(len(shown)/2, len(shown)/10*9*most/html.Len())))
	}
}

// layOut leaves on the page what fits: sections from the one that is asked for on, the last
// messages or those before the ones that were seen, and the beginnings of the other texts.
func (view *reviewView) layOut(ctx context.Context, v visit, asked map[string][]string) error {
	ctx = withPageSource(ctx)
	for _, lay := range []func(context.Context, visit, map[string][]string) error{
		view.layTexts, view.laySections, view.layRemarks, view.layMessages,
	} {
		if err := lay(ctx, v, asked); err != nil {
			return err
		}
	}
	return nil
}

// numberIn is a number in an address, or 0.
func numberIn(asked map[string][]string, name string) int {
	values := asked[name]
	if len(values) != 1 {
		return 0
	}
	number, err := strconv.Atoi(values[0])
	if err != nil || number < 0 {
		return 0
	}
	return number
}

// layTexts makes the texts that are one piece.
func (view *reviewView) layTexts(ctx context.Context, v visit, _ map[string][]string) error {
	for _, part := range []struct {
		into *templ.Component
		name textPart
		text string
		most int
	}{
		{&view.pieces.question, questionPart, view.question.Text, longestQuestion},
		{&view.pieces.purpose, purposePart, view.question.PurposeText, longestQuestion},
		{&view.pieces.grading, gradingPart, view.question.GradingImpressionText, longestQuestion},
		{&view.pieces.overall, judgementPart, view.judgement.Overall, longestOverall},
		{&view.pieces.preamble, answerPart, view.preamble, longestWithoutMarks},
	} {
		made, _, err := fit(ctx, part.text, part.most, func(text string, cut bool) templ.Component {
			if part.name == answerPart {
				return plainPart(v, view.textURL(part.name), text, cut)
			}
			return markdownPart(v, view.textURL(part.name), text, cut)
		})
		if err != nil {
			return err
		}
		*part.into = made
	}
	return nil
}

func (view *reviewView) laySections(ctx context.Context, v visit, _ map[string][]string) error {
	first := 0
	if view.from > 0 {
		at := slices.IndexFunc(view.sections, func(one judge.Section) bool { return one.Number >= view.from })
		first = max(at, 0)
	}
	size := 0
	for end := first; end < len(view.sections) && end-first < sectionsOnPage; end++ {
		section := view.sections[end]
		made, length, err := fit(ctx, section.Text, longestSection, func(text string, cut bool) templ.Component {
			return sectionCard(v, view, judge.Section{Number: section.Number, Text: text}, cut)
		})
		if err != nil {
			return err
		}
		if size > 0 && size+length > sectionBytesOnPage {
			break
		}
		size += length
		view.shown = view.sections[first : end+1]
		view.pieces.sections = append(view.pieces.sections, made)
	}
	return nil
}

// remarks are those of one kind, as they are shown.
type remarks struct {
	field string
	items []templ.Component
}

func (view *reviewView) layRemarks(ctx context.Context, v visit, _ map[string][]string) error {
	size, full := 0, false
	for _, field := range judge.ItemFields {
		of := remarks{field: field}
		for i, item := range view.judgement.Items {
			if item.Field != field {
				continue
			}
			if full { // the rest is only counted
				view.pieces.leftOut++
				continue
			}
			made, length, err := fit(ctx, remarkLines(item), longestRemark, func(text string, cut bool) templ.Component {
				return remarkItem(v, view, i, text, cut)
			})
			if err != nil {
				return err
			}
			if size+length > remarkBytesOnPage && size > 0 {
				full = true
				view.pieces.leftOut++
				continue
			}
			size += length
			of.items = append(of.items, made)
		}
		if len(of.items) > 0 {
			view.pieces.remarks = append(view.pieces.remarks, of)
		}
	}
	return nil
}

// layMessages makes the last messages, or with earlier those before the one with that number.
func (view *reviewView) layMessages(ctx context.Context, v visit, asked map[string][]string) error {
	end := len(view.said)
	if before := numberIn(asked, "earlier"); before > 0 {
		end = min(before, end)
	}
	view.later = end < len(view.said)
	size, first := 0, end
	for first > 0 && end-first < messagesOnPage {
		made, length, err := view.messagePiece(ctx, v, view.said[first-1])
		if err != nil {
			return err
		}
		if size > 0 && size+length > messageBytesOnPage {
			break
		}
		size += length
		first--
		view.pieces.messages = append(view.pieces.messages, made)
	}
	slices.Reverse(view.pieces.messages)
	view.earlier = first
	return nil
}

// layFirstMessages makes the messages from the first on: of one, its answer and what came after
// them, as much as fits.
func (view *reviewView) layFirstMessages(ctx context.Context, v visit) error {
	size := 0
	for i, said := range view.said {
		made, length, err := view.messagePiece(ctx, v, said)
		if err != nil {
			return err
		}
		if i >= messagesOnPage || i > 1 && size+length > messageBytesOnPage {
			break
		}
		size += length
		view.pieces.messages = append(view.pieces.messages, made)
	}
	return nil
}

func (view *reviewView) messagePiece(ctx context.Context, v visit, said review.Said) (templ.Component, int, error) {
	return fit(ctx, said.Content, longestMessage, func(text string, cut bool) templ.Component {
		said.Content = text
		return messageCard(v, saidCard{Said: said, cut: cut, drafted: said.ID == view.again || !view.talks() || said.Place != "", link: view.sectionLink})
	})
}

// pieces are the parts of the page of a review that are made of texts of any length.
type pieces struct {
	question, purpose, grading, overall, preamble templ.Component

	sections, messages []templ.Component
	remarks            []remarks
	leftOut            int // remarks
}

// before and after are the sections with which the pages before and after this one begin, or
// 0 if there are none. How much of them fits there is estimated.
func (view *reviewView) before() int {
	first := view.firstShown()
	size, at := 0, first
	for at > 0 && first-at < sectionsOnPage && (size == 0 || size+len(view.sections[at-1].Text) <= sectionBytesOnPage/2) {
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

// page is an address of the page of the review, with the same conversation and, unless it
// names others, the same sections.
func (view *reviewView) page(name string, number int, anchor string) templ.SafeURL {
	address := "?" + name + "=" + strconv.Itoa(number)
	if view.from > 0 && name != "from" {
		address += "&from=" + strconv.Itoa(view.from)
	}
	if view.thread != nil {
		address += "&thread=" + view.thread.ID
	}
	return templ.SafeURL(address + "#" + anchor)
}

// newest is the page with the last messages.
func (view *reviewView) newest() templ.SafeURL {
	return view.page("earlier", 0, "chat")
}

// sectionLink leads to a section, which may be on another page.
func (view *reviewView) sectionLink(number int) templ.SafeURL {
	if hasSection(view.shown, number) || !hasSection(view.sections, number) {
		return sectionAnchor(number)
	}
	return view.page("from", number, "section-"+strconv.Itoa(number))
}

// hasSection reports whether a section is among others, which are in order.
func hasSection(sections []judge.Section, number int) bool {
	_, found := slices.BinarySearchFunc(sections, number, func(one judge.Section, number int) int { return cmp.Compare(one.Number, number) })
	return found
}

// sectionAnchor leads to a section on the same page.
func sectionAnchor(number int) templ.SafeURL {
	return templ.SafeURL("#section-" + strconv.Itoa(number))
}

// causeText is why there is no answer or no assessment.
func causeText(v visit, cause string) string {
	if cause == review.Interrupted {
		return v.t("review.interrupted")
	}
	return cause
}

// saidCard is a message as a page shows it.
type saidCard struct {
	review.Said
	cut     bool // there is more of it than is shown
	drafted bool // it stands in the box already
	link    func(section int) templ.SafeURL
}

// citedOnPage is how many citations stand below a message.
const citedOnPage = 50

// cited are the citations that stand below the message.
func (c saidCard) cited() []review.Citation { return c.Citations[:min(len(c.Citations), citedOnPage)] }

// speaker is who says it. On a forge people have names.
func (c saidCard) speaker(v visit) string {
	switch {
	case c.Role != store.UserMessage:
		return v.t("chat.assistant")
	case c.Author != "":
		return c.Author
	default:
		return v.t("chat.you")
	}
}
