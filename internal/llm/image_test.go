package llm_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/llm"
)

// picky is a model that takes images, and fails as it is told if a request has any, or else if it
// has none.
type picky struct {
	llm.Model
	withImages, without error
	asked               *[]string
}

func (picky) Info() llm.Info { return llm.Info{Images: true} }

func (p picky) Chat(_ context.Context, request llm.Request, _ llm.Sink) (llm.Response, error) {
	var said []string
	images := 0
	for _, part := range request.Messages[0].Parts {
		if part.Image != nil {
			images++
			said = append(said, "image "+string(part.Image.Data))
		} else {
			said = append(said, part.Text)
		}
	}
	*p.asked = append(*p.asked, strings.Join(said, "|"))
	if images > 0 {
		return llm.Response{}, p.withImages
	}
	return llm.Response{}, p.without
}

// album has images, and notes that they were refused.
type album struct {
	data    map[string][]byte
	refused error
}

func (a *album) Image(hash string) []byte { return a.data[hash] }

func (a *album) Refused(_ context.Context, err error) { a.refused = err }

func TestARequestIsSentWithoutTheImagesThatAreRefused(t *testing.T) {
	t.Parallel()
	bad := &llm.Error{Kind: llm.BadRequest, Err: errors.New("could not process image")}
	other := &llm.Error{Kind: llm.ServerFault, Err: errors.New("oops")}
	large := llm.StatusError("gateway", http.StatusRequestEntityTooLarge, nil, "", "Request Entity Too Large", errors.New("413"))
	unknown := llm.StatusError("router", http.StatusNotFound, nil, "", "No endpoints found that support image input", errors.New("404"))
	request := llm.Request{Messages: []llm.Message{{Role: llm.User, Parts: []llm.Part{
		llm.TextPart("look"), llm.ImagePart(llm.Image{Hash: "a", Type: "image/png", Width: 1, Height: 2}),
		llm.ImagePart(llm.Image{Hash: "a", Type: "image/png", Width: 1, Height: 2}), // in another block
	}}}}
	const shown, words = "look|image A|[The same image as above.]", "look|[An image of 1×2 pixels (image/png) was here. It is not shown.]|[An image of 1×2 pixels (image/png) was here. It is not shown.]"
	for name, c := range map[string]struct {
		withImages, without error
		asked               []string
		want, refused       error
	}{
		"taken":               {nil, nil, []string{shown}, nil, nil},
		"refused":             {bad, nil, []string{shown, words}, nil, bad},
		"too large":           {large, nil, []string{shown, words}, nil, large},
		"not routed":          {unknown, nil, []string{shown, words}, nil, unknown},
		"refused, then busy":  {bad, other, []string{shown, words}, other, nil},
		"refused, then ended": {large, context.Canceled, []string{shown, words}, context.Canceled, nil},
		"too long with words": {bad, large, []string{shown, words}, large, nil}, // a shorter request may be taken
		"failed":              {other, nil, []string{shown}, other, nil},
	} {
		var asked []string
		images := &album{data: map[string][]byte{"a": []byte("A")}}
		_, err := llm.WithImages(picky{withImages: c.withImages, without: c.without, asked: &asked}, images).Chat(t.Context(), request, nil)
		if !errors.Is(err, c.want) || !errors.Is(images.refused, c.refused) || strings.Join(asked, "\n") != strings.Join(c.asked, "\n") {
			t.Errorf("%s: %v, refused %v, asked %q", name, err, images.refused, asked)
		}
	}
}
