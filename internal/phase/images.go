package phase

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"slices"
	"strings"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/phase/conversation"
	"github.com/toryo-dev/toryo/internal/task"
)

// Image is an image in a text that people wrote.
type Image struct {
	Link string // as it is written in the text
	llm.Image
}

// images are the images that this run has at hand. Their bytes are in memory only: the journal has
// their hashes, and a run that goes on asks for them again.
type images struct {
	byLink map[string]llm.Image
	data   map[string][]byte // by hash
	bytes  int               // of data
	asked  int               // how often the server was asked
	none   bool              // the provider did not accept them
	log    *slog.Logger
}

const (
	// mostAsked is how often a run asks for images: at its beginning, and when comments with
	// images come in.
	mostAsked = 10
	// mostImages and mostImageBytes are those of one run, and so of each request to a model.
	mostImages     = 8
	mostImageBytes = 12 << 20
)

// Image implements [llm.Images].
func (i *images) Image(hash string) []byte {
	if i.none {
		return nil
	}
	return i.data[hash]
}

// Refused implements [llm.Images]: no other request of this run has images.
func (i *images) Refused(ctx context.Context, err error) {
	i.none = true
	i.log.WarnContext(ctx, "the model accepts the request only without its images; it is shown none in this run", "error", err)
}

// loadImages asks for the images of the request, if a model of the run can see them. That they
// cannot be had is no reason not to work.
func (r *run) loadImages(ctx context.Context) {
	if r.images.asked == mostAsked || r.images.none || !r.seesImages() {
		return
	}
	r.images.asked++
	found, err := r.Forge.Images(ctx)
	if err != nil {
		r.Log.WarnContext(ctx, "failed to read the images of the request", "error", err)
	}
	r.images.add(found)
}

// add takes images as far as there is room.
func (i *images) add(found []Image) {
	if i.data == nil {
		i.byLink, i.data = map[string]llm.Image{}, map[string][]byte{}
	}
	for _, one := range found {
		if sum := sha256.Sum256(one.Data); hex.EncodeToString(sum[:]) != one.Hash {
			continue
		}
		if i.data[one.Hash] == nil {
			if len(i.data) == mostImages || i.bytes+len(one.Data) > mostImageBytes {
				continue
			}
			i.data[one.Hash] = one.Data
			i.bytes += len(one.Data)
		}
		image := one.Image
		image.Data = nil
		i.byLink[one.Link] = image
	}
}

// seesImages reports whether the model of any phase can see images.
func (r *run) seesImages() bool {
	return slices.ContainsFunc(task.Phases, func(phase task.Phase) bool { return r.Model(phase).Info().Images })
}

// mayHaveImages reports whether a text looks as if images were in it.
func mayHaveImages(text string) bool {
	return strings.Contains(text, "![") || strings.Contains(strings.ToLower(text), "<img")
}

// withImages is the block with those of the images at hand that its text names, in their order.
func (r *run) withImages(block conversation.Block) conversation.Block {
	for text := block.Text; ; {
		first, at := "", len(text)
		for link := range r.images.byLink {
			if found := strings.Index(text, link); found >= 0 && (found < at || found == at && len(link) > len(first)) {
				first, at = link, found
			}
		}
		if first == "" {
			return block
		}
		text = text[at+len(first):]
		image := r.images.byLink[first]
		if !slices.ContainsFunc(block.Images, func(one llm.Image) bool { return one.Hash == image.Hash }) {
			block.Images = append(block.Images, image)
		}
	}
}
