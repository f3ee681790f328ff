package assignment

import (
	"context"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/items"
	"github.com/toryo-dev/toryo/internal/lazyregexp"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

const (
	// mostReferences is how many items are read for a run, and longestReference how
	// much of the text of each it is given, in bytes.
	mostReferences   = 8
	longestReference = 16 << 10
)

// References returns the items that the text of an item names, as far as they are in the
// same repository and there to be read, in the order in which they are named. The run has
// no say in which they are: what a person wrote into the item decides, so that a run cannot
// look around. What may not be told with the item is left out: see mayShow.
func References(ctx context.Context, snapshots *items.Snapshots, forges map[task.Forge]forge.Reader, of task.Key) ([]forge.Item, error) {
	snapshot, err := snapshots.Get(ctx, of, items.ParticipantsAge)
	if err != nil {
		return nil, err
	}
	from, found := forges[of.Forge]
	if !found {
		return nil, task.Errorf(task.Unsupported, "no forge %s is configured", of.Forge)
	}
	var all []forge.Item
	for _, key := range referenced(snapshot.Item) {
		item, err := readEither(ctx, from, key)
		if code := task.CodeOf(err); code == task.NotFound || code == task.Forbidden || err == nil && !mayShow(snapshot.Item, item) {
			continue
		}
		if err != nil {
			return all, err
		}
		item.Body = textfmt.Cut(item.Body, longestReference)
		all = append(all, item)
	}
	return all, nil
}

// mayShow reports whether what another item says may be given to a task on an item:
// only if everybody who can read the one can read the other. What a run reads may end up
// where everybody can read it, and whoever can write a text chooses what it refers to. So
// it has to be of the same repository, and not confidential unless both are.
func mayShow(of, other forge.Item) bool {
	same := other.Key.Forge == of.Key.Forge && task.SameRepository(other.Key.Repository, of.Key.Repository)
	return same && (!other.Confidential || of.Confidential)
}

// readEither reads an item whose number may be that of an issue or of a pull
// request.
func readEither(ctx context.Context, from forge.Reader, key task.Key) (forge.Item, error) {
	item, err := from.Item(ctx, key)
	if task.CodeOf(err) == task.NotFound && key.Kind == task.Issue && key.Forge != task.GitLab {
		key.Kind = task.Pull
		return from.Item(ctx, key)
	}
	return item, err
}

// numberInText finds #7 and owner/name#7, and !7 where that is a merge request.
var numberInText = lazyregexp.New(`(?:^|[^\w#!&/.-])([\w.-]+(?:/[\w.-]+)+)?([#!])(\d{1,18})\b`)

// referenced returns the items of the same repository that an item's text names:
// by number, or by an address as the item's own.
func referenced(item forge.Item) []task.Key {
	named := naming{of: item.Key}
	text := item.Title + "\n" + item.Body
	for _, found := range numberInText.FindAllStringSubmatch(text, -1) {
		switch repository, mark, digits := found[1], found[2], found[3]; {
		case repository != "" && !task.SameRepository(repository, item.Key.Repository):
		case mark == "#":
			named.add(task.Issue, digits)
		case item.Key.Forge == task.GitLab:
			named.add(task.Pull, digits)
		}
	}
	own := strconv.FormatInt(item.Key.Number, 10)
	if base, ends := strings.CutSuffix(item.URL, "/"+own); ends && base != "" {
		address := lazyregexp.New(regexp.QuoteMeta(base) + `/(\d{1,18})\b`)
		for _, found := range address.FindAllStringSubmatch(text, -1) {
			named.add(item.Key.Kind, found[1])
		}
	}
	return named.keys
}

// naming gathers the items that an item names, each once and not itself.
type naming struct {
	of   task.Key
	keys []task.Key
}

func (n *naming) add(kind task.ItemKind, digits string) {
	number, err := strconv.ParseInt(digits, 10, 64)
	key := task.Key{Forge: n.of.Forge, Repository: n.of.Repository, Kind: kind, Number: number}
	apart := key.Forge == task.GitLab // issues and merge requests are counted apart
	same := func(k task.Key) bool { return k.Number == number && (k.Kind == kind || !apart) }
	if err == nil && key.Validate() == nil && !same(n.of) && !slices.ContainsFunc(n.keys, same) && len(n.keys) < mostReferences {
		n.keys = append(n.keys, key)
	}
}
