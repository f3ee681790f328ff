package cloud

import (
	"context"
	"errors"
	"strings"

	"github.com/toryo-dev/toryo/internal/llm"
)

// Named gives a model the name of its cloud, and its errors what to do about them there.
func Named(provider string, model llm.Model) llm.Model { return &named{model, provider} }

type named struct {
	llm.Model
	provider string
}

// Info implements [llm.Model].
func (n *named) Info() llm.Info {
	info := n.Model.Info()
	info.Provider = n.provider
	return info
}

// Chat implements [llm.Model].
func (n *named) Chat(ctx context.Context, request llm.Request, sink llm.Sink) (llm.Response, error) {
	response, err := n.Model.Chat(ctx, request, sink)
	return response, n.in(err)
}

// CountTokens implements [llm.Model].
func (n *named) CountTokens(ctx context.Context, request llm.Request) (int64, error) {
	count, err := n.Model.CountTokens(ctx, request)
	return count, n.in(err)
}

func (n *named) in(err error) error {
	failed, ok := errors.AsType[*llm.Error](err)
	if !ok {
		return err
	}
	failed.Provider = n.provider
	if lacking, is := errors.AsType[*credentialError](err); is {
		failed.Kind, failed.Detail = lacking.kind(), lacking.Error()
		failed.Hint = "check llm.credentials; docs/clouds.md says what each kind needs"
		return err
	}
	text := strings.ToLower(failed.Detail)
	for _, one := range hints[n.provider] {
		if (one.kind == "" || one.kind == failed.Kind) && strings.Contains(text, one.says) {
			if one.means != "" {
				failed.Kind = one.means
			}
			failed.Hint = one.hint
			return err
		}
	}
	return err
}

// hint is what to do about an error of a kind that says something.
type hint struct {
	kind  llm.Kind // "" for all
	says  string   // in small letters; "" for whatever it says
	means llm.Kind // the kind that it is in truth; "" for as it is
	hint  string
}

// hints are looked through in order.
var hints = map[string][]hint{
	"azure": {
		{"", "deploymentnotfound", llm.UnknownModel, "check llm.deployment (or llm.model): it is the name of the deployment in the resource of llm.base_url"},
		{llm.UnknownModel, "deployment", "", "check llm.deployment (or llm.model): it is the name of the deployment in the resource of llm.base_url"},
		{llm.UnknownModel, "", "", "check llm.deployment (or llm.model) and llm.base_url, which is the endpoint of the resource; an old resource needs llm.api_version, and a model that has no Responses llm.api: chat"},
		{llm.Unauthorized, "permission", "", "give the identity the role Cognitive Services OpenAI User on the resource"},
		{llm.Unauthorized, "does not have access", "", "give the identity the role Cognitive Services OpenAI User on the resource"},
		{llm.Unauthorized, "", "", "check the key, and that llm.base_url is the resource that it is of"},
		{llm.Unreachable, "", "", "check llm.base_url: it is the endpoint of the resource, such as https://NAME.openai.azure.com"},
	},
	"bedrock": {
		{"", "on-demand throughput isn", llm.UnknownModel, "name an inference profile in llm.model, such as eu.anthropic.claude-… in Europe"},
		{"", "model identifier is invalid", llm.UnknownModel, "check llm.model and llm.region: not every region has every model"},
		{"", "input is too long", llm.TooLong, ""},
		{"", "too many tokens per day", llm.QuotaUsedUp, "ask AWS for a higher quota, or wait until tomorrow"},
		{llm.Unauthorized, "not authorized to perform", "", "let the role use bedrock:InvokeModelWithResponseStream on the model"},
		{llm.Unauthorized, "access to the model", "", "enable the model for the account in this region"},
		{llm.Unauthorized, "expired", "", "the credentials have ended: renew them, or use llm.credentials workload or metadata"},
		{llm.Unauthorized, "", "", "check llm.credentials, llm.region and that the role may use bedrock:InvokeModelWithResponseStream"},
		{llm.UnknownModel, "", "", "check llm.model and llm.region: not every region has every model"},
		{llm.Unreachable, "", "", "check llm.region and the network"},
	},
	"vertex": {
		{llm.Unauthorized, "has not been used", "", "enable the Vertex AI API for llm.project"},
		{llm.Unauthorized, "disabled", "", "enable the Vertex AI API for llm.project"},
		{llm.Unauthorized, "", "", "check llm.project, and give the service account the role roles/aiplatform.user"},
		{llm.UnknownModel, "", "", "check llm.model and llm.region: not every region has every model, and some have to be enabled in the Model Garden"},
		{llm.Unreachable, "", "", "check llm.region and the network"},
	},
}
