package site

import "github.com/toryo-dev/toryo/internal/app/config"

// imagesOf reports whether the model is shown images. One that is not known is not, unless
// the configuration says so: most servers refuse a request with an image that they cannot show.
func imagesOf(chosen config.LLM) bool {
	switch chosen.Images {
	case "on":
		return true
	case "off":
		return false
	}
	known, _ := chosen.Find()
	return known.Images
}
