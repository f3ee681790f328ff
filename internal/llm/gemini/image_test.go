package gemini

import (
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/llm"
)

// The API takes no GIF images: the model is told in words.
func TestNoGIF(t *testing.T) {
	t.Parallel()
	made, ok := (&Model{}).partOf(llm.ImagePart(llm.Image{Type: "image/gif", Width: 3, Height: 4, Data: []byte("GIF")}))
	if !ok || made.InlineData != nil || !strings.Contains(made.Text, "3×4") {
		t.Errorf("got %+v", made)
	}
}
