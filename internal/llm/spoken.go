package llm

import "strings"

// Spoken is whose API a provider of the configuration speaks for a model, and whether it
// has the model by an API that is known here. Clouds have models of several vendors.
func Spoken(provider, model string) (api string, supported bool) {
	switch provider {
	case "azure":
		return "openai", true
	case "bedrock":
		return "anthropic", strings.Contains(model, "anthropic.") || strings.HasPrefix(model, "arn:")
	case "vertex":
		bare := !strings.ContainsAny(model, "/:?#")
		if strings.HasPrefix(model, "claude") {
			return "anthropic", bare
		}
		return "gemini", bare && strings.HasPrefix(model, "gemini")
	}
	return provider, true
}
