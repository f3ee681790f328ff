package web

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/messages"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

const (
	// mostTold is how many needs a browser hears of.
	mostTold = 200
	// longestTold is how many characters of a text a notification has.
	longestTold = 200
)

// toldNeeds is what the script of a page reads, to tell the reader what needs somebody.
type toldNeeds struct {
	Quiet bool       `json:"quiet"`
	Needs []toldNeed `json:"needs"`
}

type toldNeed struct {
	Key    string `json:"key"`
	Kind   string `json:"kind"`
	What   string `json:"what"`
	Detail string `json:"detail"`
	Path   string `json:"path"`
}

func (p *Pages) registerNotifications(mux *http.ServeMux) {
	mux.HandleFunc("GET /needs.json", p.signedIn(access.Viewer, p.tellNeeds))
}

// shortKey is a key that a browser keeps: one that is too long is replaced by its kind and its sum.
func shortKey(key string) string {
	if len(key) <= longestTold {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	kind, _, _ := strings.Cut(key, "/")
	return kind + "/" + hex.EncodeToString(sum[:])
}

// tellNeeds says what needs somebody, in the language of the reader.
func (p *Pages) tellNeeds(w http.ResponseWriter, r *http.Request, v visit) {
	needs, err := p.needs(r.Context())
	if err != nil {
		p.fail(w, r, v, err)
		return
	}
	told := toldNeeds{Quiet: p.Quiet != nil && p.Quiet(v.now), Needs: []toldNeed{}}
	for _, need := range needs[:min(len(needs), mostTold)] {
		said := messages.Need(v.language, need)
		one := toldNeed{Key: shortKey(need.Key), Kind: string(need.Kind), What: textfmt.Shorten(textfmt.OneLine(said.What), longestTold), Path: cmp.Or(needList(need), "/")}
		if one.Detail = need.Detail; one.Detail == "" {
			one.Detail = textfmt.UpperFirst(said.Why)
		}
		one.Detail = textfmt.Shorten(textfmt.OneLine(one.Detail), longestTold)
		told.Needs = append(told.Needs, one)
	}
	body, err := json.Marshal(told)
	if err != nil {
		p.fail(w, r, v, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if _, err := w.Write(body); err != nil {
		p.Log.DebugContext(r.Context(), "client disconnected", "error", err)
	}
}
