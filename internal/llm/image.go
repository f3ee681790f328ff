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

// notShown is said in place of an image.
func (i Image) notShown() string {
	return fmt.Sprintf("[An image of %d×%d pixels (%s) was here. It is not shown.]", i.Width, i.Height, i.Type)
}

// WithImages returns a model that is sent the bytes of images, which load finds by their hash. An
// image that it does not find, and every image if the model takes none, is sent as a line of text
// that says so.
func WithImages(model Model, load func(hash string) []byte) Model {
	return imaged{model, load}
}

type imaged struct {
	Model
	load func(hash string) []byte
}

// Chat implements [Model].
func (m imaged) Chat(ctx context.Context, request Request, sink Sink) (Response, error) {
	return m.Model.Chat(ctx, m.filled(request), sink)
}

// CountTokens implements [Model].
func (m imaged) CountTokens(ctx context.Context, request Request) (int64, error) {
	return m.Model.CountTokens(ctx, m.filled(request))
}

func (m imaged) filled(request Request) Request {
	isImage := func(p Part) bool { return p.Image != nil }
	if !slices.ContainsFunc(request.Messages, func(m Message) bool { return slices.ContainsFunc(m.Parts, isImage) }) {
		return request
	}
	request.Messages = slices.Clone(request.Messages)
	for at, message := range request.Messages {
		if !slices.ContainsFunc(message.Parts, isImage) {
			continue
		}
		parts := slices.Clone(message.Parts)
		for i, part := range parts {
			if part.Image != nil {
				parts[i] = m.part(*part.Image)
			}
		}
		request.Messages[at].Parts = parts
	}
	return request
}

func (m imaged) part(image Image) Part {
	if m.Info().Images {
		image.Data = m.load(image.Hash)
	}
	if len(image.Data) == 0 {
		return TextPart(image.notShown())
	}
	return ImagePart(image)
}

// seeing is a model that takes images.
type seeing struct{ Model }

// Info implements [Model].
func (s seeing) Info() Info {
	info := s.Model.Info()
	info.Images = true
	return info
}
