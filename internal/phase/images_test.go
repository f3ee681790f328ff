package phase

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/phase/conversation"
)

func imageNamed(link string, size int) Image {
	data := bytes.Repeat([]byte(link), size)
	sum := sha256.Sum256(data)
	return Image{Link: link, Image: llm.Image{Hash: hex.EncodeToString(sum[:]), Type: "image/png", Data: data}}
}

// A run has few images, whatever it is given, and only those whose bytes are what their hash says.
func TestImagesOfARunAreBounded(t *testing.T) {
	t.Parallel()
	r := &run{images: images{log: slog.New(slog.DiscardHandler)}}
	forged := imageNamed("forged", 1)
	forged.Data = []byte("something else")
	large := imageNamed("large", mostImageBytes/len("large")+1)
	r.images.add([]Image{forged, large, imageNamed("b", 1), imageNamed("a", 1)})
	for number := range 3 * mostImages {
		r.images.add([]Image{imageNamed(fmt.Sprintf("n%d", number), 1)})
	}
	if len(r.images.data) != mostImages || r.images.Image(forged.Hash) != nil || r.images.Image(large.Hash) != nil {
		t.Errorf("it has %d images", len(r.images.data))
	}
	block := r.withImages(conversation.Block{Text: "forged, then a, b, a again and large"})
	if len(block.Images) != 2 || block.Images[0].Hash != imageNamed("a", 1).Hash || block.Images[1].Hash != imageNamed("b", 1).Hash || block.Images[0].Data != nil {
		t.Errorf("the block has %+v", block.Images)
	}
	r.images.Refused(t.Context(), errors.New("no"))
	if r.images.Image(block.Images[0].Hash) != nil {
		t.Error("an image is shown after the model refused them")
	}
}
