package site

import (
	"bytes"
	"context"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/llm"
)

// atHand are images that a test has.
type atHand map[string][]byte

func (a atHand) Image(hash string) []byte { return a[hash] }

func (atHand) Refused(context.Context, error) {}

// Each wire format carries the bytes of an image whole, and a model that sees none is told in
// words that there was one.
func TestImagesOnTheWire(t *testing.T) {
	t.Parallel()
	data := bytes.Repeat([]byte("\x89PNG\x00\xff picture "), 20_000)
	encoded := base64.StdEncoding.EncodeToString(data)
	for name, c := range map[string]struct {
		llm  config.LLM
		want string
	}{
		"anthropic": {config.LLM{Provider: "anthropic"}, `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + encoded + `"}`},
		"chat":      {config.LLM{Provider: "openai", API: "chat"}, `{"type":"image_url","image_url":{"url":"data:image/png;base64,` + encoded + `"}}`},
		"responses": {config.LLM{Provider: "openai", API: "responses"}, `{"type":"input_image","image_url":"data:image/png;base64,` + encoded + `"}`},
		"gemini":    {config.LLM{Provider: "gemini"}, `{"inlineData":{"mimeType":"image/png","data":"` + encoded + `"}}`},
	} {
		for _, sees := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				var asked []string
				server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					body, _ := io.ReadAll(r.Body)
					asked = append(asked, string(body))
					http.Error(w, `{"error":{"message":"no"}}`, http.StatusBadRequest)
				}))
				t.Cleanup(server.Close)
				chosen := c.llm // the other test of the format has its own server
				chosen.Model, chosen.BaseURL, chosen.APIKey, chosen.MaxTokens, chosen.ContextLength = "some-model", server.URL, "key", 100, 10_000
				adapter, err := Connect(chosen)
				if err != nil {
					t.Fatal(err)
				}
				model := llm.WithImages(llm.Wrap(adapter, llm.Layers{Retry: llm.RetryPolicy{Tries: 1}, Images: sees}), atHand{"h": data})
				request := llm.Request{Messages: []llm.Message{{Role: llm.User, Parts: []llm.Part{llm.TextPart("look"),
					llm.ImagePart(llm.Image{Hash: "h", Type: "image/png", Width: 40, Height: 30}), llm.ImagePart(llm.Image{Hash: "gone", Type: "image/png", Width: 7, Height: 8})}}}}
				_, _ = model.Chat(t.Context(), request, nil) // the server refuses; what counts is what it was sent
				if len(asked) == 0 || len(asked) != map[bool]int{true: 2, false: 1}[sees] || strings.Contains(asked[len(asked)-1], encoded) {
					t.Fatalf("sees %v: %d requests", sees, len(asked))
				}
				got := asked[0]
				if strings.Contains(got, c.want) != sees || strings.Contains(got, encoded) != sees || strings.Contains(got, "40×30 pixels") == sees || !strings.Contains(got, "7×8 pixels") {
					t.Errorf("sees %v: the request is %.300s", sees, got)
				}
			})
		}
	}
}

func TestWhichModelsSeeImages(t *testing.T) {
	t.Parallel()
	for model, want := range map[string]bool{"claude-sonnet-4-5": true, "gpt-4o-mini": true, "gemini-2.5-pro": true, "qwen3-coder": false, "gpt-3.5-turbo": false} {
		if got := imagesOf(config.LLM{Provider: "openai", Model: model, Images: "auto"}); got != want {
			t.Errorf("%s: %v", model, got)
		}
	}
	if imagesOf(config.LLM{Model: "gpt-4o", Images: "off"}) || !imagesOf(config.LLM{Model: "mine", Images: "on"}) {
		t.Error("the setting does not count")
	}
}
