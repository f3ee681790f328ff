package web

import (
	"context"
	"net/http"
	"strings"

	"github.com/a-h/templ"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

// reviewList is a page of the list.
type reviewList struct {
	listing
	rows  []reviewRow
	links []store.SavedLink
	did   string // what was done with many reviews
	older string // the address of the reviews that were not looked at; "" if there are none
}

// reviewColumns are the columns by which reviews can be put in order.
var reviewColumns = columns[reviewRow]{
	"title":   byText(func(row reviewRow) string { return row.title }),
	"pull":    byText(func(row reviewRow) string { return row.of() }),
	"verdict": byText(func(row reviewRow) string { return row.Verdict }),
	"owner":   byText(func(row reviewRow) string { return row.Owner }),
	"when":    byTime(func(row reviewRow) timeOf { return row.CreatedAt }),
}

// of is the pull request that the review is of; "" for one of a document.
func (row reviewRow) of() string {
	if row.ofPull() {
		return row.Pull.String()
	}
	return ""
}

// searched is a text from an address as it can be looked for: no database takes every
// sequence of bytes, or a pattern of any length.
func searched(text string) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, ""), "\x00", "")
	return strings.TrimSpace(textfmt.Shorten(text, maxSearch))
}

func (p *Pages) showReviews(r *http.Request, v visit) (templ.Component, error) {
	ctx := r.Context()
	list := reviewList{listing: readListing(r, typeName, beforeName), did: did(r, v)}
	found, err := p.Store.ListReviews(ctx, store.ReviewFilter{
		Reader: v.user.Login, Pulls: true, Newest: true, Brief: true, Kind: list.get(typeName), Text: searched(list.search()),
		Before: searched(list.get(beforeName)), Limit: mostListed,
	})
	if err != nil {
		return nil, err
	}
	if len(found) == mostListed {
		list.older = list.with(beforeName, found[len(found)-1].ID)
	}
	rows := make([]reviewRow, 0, len(found))
	for _, one := range found {
		rows = append(rows, reviewRow{p.Reviews.Current(one), firstLine(one.Title)})
	}
	inOrder(list.listing, rows, reviewColumns)
	list.rows = pageOf(&list.listing, rows)
	list.links, err = p.linksOf(ctx, v, list.path)
	return reviewsPage(v, list), err
}

// deleteReviews deletes several reviews of the reader's.
func (p *Pages) deleteReviews(w http.ResponseWriter, r *http.Request, v visit) {
	p.many(w, r, v, manyAction{name: "review", path: "/reviews/", do: map[string]func(context.Context, visit, string) error{
		"delete": func(ctx context.Context, v visit, id string) error {
			return p.Reviews.DeleteReview(ctx, v.user.Login, id)
		},
	}})
}

// reviewChoices are what can be done with many reviews.
func reviewChoices(v visit) []manyChoice {
	return []manyChoice{{"delete", "danger", v.t("review.delete"), v.t("review.delete_many_sure")}}
}

// mine reports whether the review is the reader's own, who may delete it.
func (row reviewRow) mine(v visit) bool { return !row.ofPull() && !row.others(v) }
