package site

import (
	"regexp"

	"github.com/toryo-dev/toryo/internal/app/config"
)

// seesImages are the names of models that take images, with any prefix of a path.
var seesImages = regexp.MustCompile(`^(.*/)?(claude-(3|opus|sonnet|haiku)|gpt-4o|gpt-4\.1|gpt-5|o1($|-20)|o3|o4-mini|gemini-|chatgpt-4o)`)

// imagesOf reports whether the model is shown images.
func imagesOf(chosen config.LLM) bool {
	switch chosen.Images {
	case "on":
		return true
	case "off":
		return false
	}
	return seesImages.MatchString(chosen.Model) && chosen.Provider != "script"
}
