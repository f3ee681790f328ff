package llm

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
)

// Image is a picture in a message. What is written down of it is which one it is, not its bytes:
// they are put in when a request is sent; see [WithImages].
type Image struct {
	Hash   string `json:"hash"` // SHA-256 of the bytes, in hexadecimal
	Type   string `json:"type"` // such as image/png
	Width  int    `json:"width"`
	Height int    `json:"height"`
	Data   []byte `json:"-"`
}

// ImagePart returns a part with an image.
func ImagePart(image Image) Part { return Part{Image: &image} }

// Base64 is the bytes as the wire formats want them.
func (i Image) Base64() string { return base64.StdEncoding.EncodeToString(i.Data) }

const (
	// pixelsPerToken and mostImageTokens are about what the vendors count: an image takes a
	// token for so many pixels, and is made smaller by them when it is large.
	pixelsPerToken  = 750
	mostImageTokens = 1600
	// bytesPerToken makes tokens into a size that a [Meter] makes into tokens again.
	bytesPerToken = 3
)

// size is what the image counts for in the size of a message. Its bytes say nothing about how
// many tokens it takes.
func (i Image) size() int {
	return bytesPerToken * min(i.Width*i.Height/pixelsPerToken+1, mostImageTokens)
}

// NotShown is said in place of an image.
func (i Image) NotShown() string {
	return fmt.Sprintf("[An image of %d×%d pixels (%s) was here. It is not shown.]", i.Width, i.Height, i.Type)
}

// Images is where the bytes of images are found.
type Images interface {
	// Image returns the bytes of the image with the hash, nil if they are not at hand.
	Image(hash string) []byte
	// Refused is told that the model took a request only without its images.
	Refused(ctx context.Context, err error)
}

// WithImages returns a model that is sent the bytes of images. An image that is not at hand, and
// every image if the model takes none, is sent as a line of text that says so; one that is in a
// request already is sent once. A request that the provider does not accept is sent once more
// without images, and that answer counts: a picture may not be what a task fails for.
func WithImages(model Model, images Images) Model { return imaged{model, images} }

type imaged struct {
	Model
	images Images
}

// Chat implements [Model].
func (m imaged) Chat(ctx context.Context, request Request, sink Sink) (Response, error) {
	filled, shown := m.filled(request, m.Info().Images)
	response, err := m.Model.Chat(ctx, filled, sink)
	if shown == 0 || !slices.Contains(refusals, KindOf(err)) {
		return response, err
	}
	filled, _ = m.filled(request, false)
	again, failed := m.Model.Chat(ctx, filled, sink)
	if failed == nil && again.Standin == nil { // what a fallback refuses the model may take
		m.images.Refused(ctx, err)
	}
	return again, failed
}

// refusals are what a request with images may fail with because of them: besides the plain one, a
// gateway may not take a body of this size, and a router may say that it has no such model that takes
// images.
var refusals = []Kind{BadRequest, TooLong, UnknownModel}

// CountTokens implements [Model].
func (m imaged) CountTokens(ctx context.Context, request Request) (int64, error) {
	filled, _ := m.filled(request, m.Info().Images)
	return m.Model.CountTokens(ctx, filled)
}

// filled is the request with the bytes of its images, or with words for them, and how many images
// it has.
func (m imaged) filled(request Request, show bool) (filled Request, shown int) {
	isImage := func(p Part) bool { return p.Image != nil }
	seen := map[string]bool{}
	request.Messages = slices.Clone(request.Messages)
	for at, message := range request.Messages {
		if !slices.ContainsFunc(message.Parts, isImage) {
			continue
		}
		parts := slices.Clone(message.Parts)
		for i, part := range parts {
			if part.Image == nil {
				continue
			}
			image := *part.Image
			if image.Data = nil; show {
				image.Data = m.images.Image(image.Hash)
			}
			switch {
			case len(image.Data) == 0:
				parts[i] = TextPart(image.NotShown())
			case seen[image.Hash]:
				parts[i] = TextPart("[The same image as above.]")
			default:
				parts[i], seen[image.Hash] = ImagePart(image), true
			}
		}
		request.Messages[at].Parts = parts
	}
	return request, len(seen)
}

// seeing is a model that takes images.
type seeing struct{ Model }

// Info implements [Model].
func (s seeing) Info() Info {
	info := s.Model.Info()
	info.Images = true
	return info
}
