package cloud_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/llm/anthropic"
	"github.com/toryo-dev/toryo/internal/llm/cloud"
	"github.com/toryo-dev/toryo/internal/llm/gemini"
	"github.com/toryo-dev/toryo/internal/llm/llmtest"
	"github.com/toryo-dev/toryo/internal/llm/openai"
	"github.com/toryo-dev/toryo/internal/llm/script"
	"github.com/toryo-dev/toryo/internal/task"
)

var amazonVariables = map[string]string{
	"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "AWS_SESSION_TOKEN": "the-session",
}

func variables(from map[string]string) func(string) string {
	return func(name string) string { return from[name] }
}

func bedrock(place cloud.Place) func(llm.Endpoint) (llm.Model, error) {
	return func(endpoint llm.Endpoint) (llm.Model, error) {
		endpoint.Model = "eu.anthropic.claude-test-20250101-v1:0"
		reached, err := cloud.Bedrock(place, endpoint)
		if err != nil {
			return nil, err
		}
		return cloud.Named("bedrock", anthropic.New(reached)), nil
	}
}

func vertex(place cloud.Place, model string) func(llm.Endpoint) (llm.Model, error) {
	return func(endpoint llm.Endpoint) (llm.Model, error) {
		endpoint.Model = model
		reached, err := cloud.Vertex(place, endpoint)
		if err != nil {
			return nil, err
		}
		if strings.HasPrefix(model, "claude") {
			return cloud.Named("vertex", anthropic.New(reached)), nil
		}
		made, err := gemini.New(reached)
		if err != nil {
			return nil, err
		}
		return cloud.Named("vertex", made), nil
	}
}

func azure(place cloud.Place, api openai.API) func(llm.Endpoint) (llm.Model, error) {
	return func(endpoint llm.Endpoint) (llm.Model, error) {
		reached, err := cloud.Azure(place, endpoint)
		if err != nil {
			return nil, err
		}
		made, err := openai.New(reached, api)
		if err != nil {
			return nil, err
		}
		return cloud.Named("azure", made), nil
	}
}

// checked fails a request whose headers and address are not what the cloud wants.
func checked(check func(r *http.Request, body []byte) string) func(testing.TB, http.Handler) http.Handler {
	return func(t testing.TB, next http.Handler) http.Handler {
		t.Helper()
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return // the client has gone
			}
			if wrong := check(r, body); wrong != "" {
				t.Errorf("%s %s: %s", r.Method, r.URL, wrong)
			}
			if r.Header.Get(llm.RunHeader) != "" || r.Header.Get("X-Api-Key") != "" || r.Header.Get("X-Goog-Api-Key") != "" {
				t.Errorf("%s: headers that are not for it: %v", r.URL, r.Header)
			}
			r.Body = io.NopCloser(strings.NewReader(string(body)))
			next.ServeHTTP(w, r)
		})
	}
}

// signature checks Signature Version 4 as a server does, from the request that came and the secret
// that both know.
func signature(r *http.Request, body []byte) string {
	const secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
	given, found := strings.CutPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/")
	if !found {
		return "it is not signed: " + r.Header.Get("Authorization")
	}
	scope, rest, _ := strings.Cut(given, ", SignedHeaders=")
	names, got, _ := strings.Cut(rest, ", Signature=")
	date := r.Header.Get("X-Amz-Date")
	if !strings.HasPrefix(scope, date[:8]+"/eu-central-1/bedrock/aws4_request") {
		return "the scope is " + scope
	}
	for _, name := range []string{"host", "x-amz-date", "x-amz-security-token"} {
		if !slices.Contains(strings.Split(names, ";"), name) {
			return name + " is not signed"
		}
	}
	sum := func(data []byte) string { made := sha256.Sum256(data); return hex.EncodeToString(made[:]) }
	keyed := func(key []byte, text string) []byte {
		made := hmac.New(sha256.New, key)
		made.Write([]byte(text))
		return made.Sum(nil)
	}
	headers := ""
	for name := range strings.SplitSeq(names, ";") {
		value := r.Header.Get(name)
		if name == "host" {
			value = r.Host
		}
		headers += name + ":" + value + "\n"
	}
	// The path on the wire is escaped once; it is signed escaped twice.
	path := strings.ReplaceAll(url.QueryEscape(r.URL.EscapedPath()), "%2F", "/")
	canonical := r.Method + "\n" + path + "\n" + r.URL.RawQuery + "\n" + headers + "\n" + names + "\n" + sum(body)
	key := keyed(keyed(keyed(keyed([]byte("AWS4"+secret), date[:8]), "eu-central-1"), "bedrock"), "aws4_request")
	want := hex.EncodeToString(keyed(key, "AWS4-HMAC-SHA256\n"+date+"\n"+scope+"\n"+sum([]byte(canonical))))
	if got != want {
		return "the signature is wrong"
	}
	return ""
}

func header(name, want string) func(*http.Request, []byte) string {
	return func(r *http.Request, _ []byte) string {
		if got := r.Header.Get(name); got != want {
			return name + " is " + got
		}
		return ""
	}
}

// anthropicReasoning is how the Anthropic adapter asks for reasoning, which the clouds pass on.
func anthropicReasoning() []llmtest.Asked {
	return []llmtest.Asked{
		{Reasoning: llm.Reasoning{Budget: 4000, MinBudget: 1024}, Want: map[string]string{"thinking.budget_tokens": "4000", "temperature": ""}},
		{Reasoning: llm.Reasoning{Type: "adaptive", Effort: "high"}, Want: map[string]string{"thinking.type": `"adaptive"`, "output_config.effort": `"high"`}},
		{Reasoning: llm.Reasoning{Type: "disabled"}, Want: map[string]string{"thinking": `{"type":"disabled"}`}},
	}
}

func TestBedrockConformance(t *testing.T) {
	t.Parallel()
	features := llmtest.Features{
		RawArguments: true, ErrorFlag: true, Network: true, Vendor: true,
		Reasoning: anthropicReasoning(), Thoughts: llmtest.ThoughtsWhole,
	}
	signed := cloud.Place{Region: "eu-central-1", Credentials: "environment", Variable: variables(amazonVariables)}
	llmtest.Run(t, llmtest.OverHTTPBehind(bedrock(signed), "", checked(signature)), features)
}

// The keys of Bedrock are shown as they are.
func TestKeyOfBedrock(t *testing.T) {
	t.Parallel()
	made, err := script.New(script.Script{Rules: []script.Rule{{Answer: script.Answer{Text: "hello"}}}})
	if err != nil {
		t.Fatal(err)
	}
	open := llmtest.OverHTTPBehind(bedrock(cloud.Place{Region: "eu-central-1"}), "", checked(header("Authorization", "Bearer key-of-the-test")))
	model, _ := open(t, made, llm.Endpoint{})
	response, err := model.Chat(t.Context(), llm.Request{Messages: []llm.Message{llm.UserText("hi")}}, nil)
	if err != nil || response.Message.Text() != "hello" || model.Info().Provider != "bedrock" {
		t.Errorf("%+v, %v", response, err)
	}
}

func TestVertexConformance(t *testing.T) {
	t.Parallel()
	place := cloud.Place{Region: "europe-west1", Project: "my-project"}
	check := func(model string) func(r *http.Request, body []byte) string {
		return func(r *http.Request, body []byte) string {
			if !strings.HasPrefix(r.URL.Path, "/v1/projects/my-project/locations/europe-west1/publishers/"+model) {
				return "the path is wrong"
			}
			return header("Authorization", "Bearer key-of-the-test")(r, body)
		}
	}
	t.Run("anthropic", func(t *testing.T) {
		t.Parallel()
		llmtest.Run(t, llmtest.OverHTTPBehind(vertex(place, "claude-test@20250101"), "", checked(check("anthropic/models/"))),
			llmtest.Features{
				Counts: true, RawArguments: true, ErrorFlag: true, Network: true, Vendor: true,
				Reasoning: anthropicReasoning(), Thoughts: llmtest.ThoughtsWhole,
			})
	})
	t.Run("gemini", func(t *testing.T) {
		t.Parallel()
		llmtest.Run(t, llmtest.OverHTTPBehind(vertex(place, "gemini-test"), "", checked(check("google/models/gemini-test:"))),
			llmtest.Features{
				Counts: true, ErrorFlag: true, Network: true, Vendor: true, Thoughts: llmtest.ThoughtsSigned,
				Reasoning: []llmtest.Asked{
					{Reasoning: llm.Reasoning{Effort: "low"}, Want: map[string]string{"generationConfig.thinkingConfig": `{"thinkingLevel":"low"}`}},
					{Reasoning: llm.Reasoning{Budget: 4000}, Want: map[string]string{"generationConfig.thinkingConfig": `{"thinkingBudget":4000}`}},
				},
			})
	})
}

func TestAzureConformance(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		place cloud.Place
		api   openai.API
		path  string
		// How reasoning is asked for, and what comes back of it.
		effort   string
		thoughts llmtest.Thoughts
	}{
		"v1":              {cloud.Place{Deployment: "team"}, openai.Chat, "/openai/v1/chat/completions", "reasoning_effort", llmtest.ThoughtsTold},
		"v1 responses":    {cloud.Place{Deployment: "team"}, openai.Responses, "/openai/v1/responses", "reasoning.effort", llmtest.ThoughtsWhole},
		"dated responses": {cloud.Place{Deployment: "team", APIVersion: "2024-10-21"}, openai.Responses, "/openai/responses?api-version=2024-10-21", "reasoning.effort", llmtest.ThoughtsWhole},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			llmtest.Run(t, llmtest.OverHTTPBehind(azure(test.place, test.api), "", checked(azureRequest(test.path))),
				llmtest.Features{
					RawArguments: true, Network: true, Vendor: true, Thoughts: test.thoughts,
					Reasoning: []llmtest.Asked{{Reasoning: llm.Reasoning{Effort: "high"}, Want: map[string]string{test.effort: `"high"`, "temperature": ""}}},
				})
		})
	}
}

// azureRequest checks where a request goes, that it names the deployment and shows the key.
func azureRequest(path string) func(*http.Request, []byte) string {
	return func(r *http.Request, body []byte) string {
		if r.URL.RequestURI() != path || r.Header.Get("Authorization") != "" || !strings.Contains(string(body), `"model":"team"`) ||
			strings.Contains(string(body), `"max_tokens"`) {
			return "not what Azure wants: " + string(body)
		}
		return header("Api-Key", "key-of-the-test")(r, nil)
	}
}

func TestPathsOfAzure(t *testing.T) {
	t.Parallel()
	made, err := script.New(script.Script{Rules: []script.Rule{{Answer: script.Answer{Text: "hello"}}}})
	if err != nil {
		t.Fatal(err)
	}
	for path, test := range map[string]struct {
		place cloud.Place
		api   openai.API
		after string // of the endpoint of the resource
	}{
		"/openai/v1/responses": {cloud.Place{Deployment: "team"}, openai.Responses, "/openai/v1/"},
		"/openai/deployments/team/chat/completions?api-version=2024-10-21": {cloud.Place{Deployment: "team", APIVersion: "2024-10-21"}, openai.Chat, "/"},
	} {
		open := llmtest.OverHTTPBehind(azure(test.place, test.api), test.after, checked(azureRequest(path)))
		model, _ := open(t, made, llm.Endpoint{})
		if response, err := model.Chat(t.Context(), llm.Request{Messages: []llm.Message{llm.UserText("hi")}}, nil); err != nil || response.Message.Text() != "hello" {
			t.Errorf("%s: %+v, %v", path, response, err)
		}
	}
}

// What went wrong is said with what to do about it.
func TestHints(t *testing.T) {
	t.Parallel()
	signed := cloud.Place{Region: "eu-central-1", Credentials: "environment", Variable: variables(amazonVariables)}
	unset := cloud.Place{Region: "eu-central-1", Credentials: "environment"}
	google := cloud.Place{Region: "europe-west1", Project: "p"}
	for name, test := range map[string]struct {
		connect func(llm.Endpoint) (llm.Model, error)
		failure script.Failure
		kind    llm.Kind
		hint    string
	}{
		"no deployment":      {azure(cloud.Place{}, openai.Chat), script.Failure{Status: 404, Type: "DeploymentNotFound", Message: "The API deployment for this resource does not exist."}, llm.UnknownModel, "llm.deployment"},
		"another resource":   {azure(cloud.Place{}, openai.Chat), script.Failure{Status: 401, Message: "Access denied due to invalid subscription key or wrong API endpoint."}, llm.Unauthorized, "llm.base_url"},
		"no role":            {azure(cloud.Place{}, openai.Chat), script.Failure{Status: 403, Message: "The principal lacks the required data action: permission denied"}, llm.Unauthorized, "Cognitive Services OpenAI User"},
		"another region":     {bedrock(signed), script.Failure{Status: 400, Message: "The provided model identifier is invalid."}, llm.UnknownModel, "llm.region"},
		"profile needed":     {bedrock(signed), script.Failure{Status: 400, Message: "Invocation of model ID x with on-demand throughput isn\u2019t supported."}, llm.UnknownModel, "inference profile"},
		"no right":           {bedrock(signed), script.Failure{Status: 403, Message: "User: x is not authorized to perform: bedrock:InvokeModelWithResponseStream"}, llm.Unauthorized, "bedrock:InvokeModelWithResponseStream"},
		"ended":              {bedrock(signed), script.Failure{Status: 403, Message: "The security token included in the request is expired"}, llm.Unauthorized, "renew"},
		"too long":           {bedrock(signed), script.Failure{Status: 400, Type: "ValidationException", Message: "Input is too long for requested model."}, llm.TooLong, "llm.context_length"},
		"the model failed":   {bedrock(signed), script.Failure{Status: 424, Type: "ModelErrorException", Message: "The system encountered an unexpected error during processing."}, llm.ServerFault, "later"},
		"day":                {bedrock(signed), script.Failure{Status: 429, Message: "Too many tokens per day, please wait before trying again."}, llm.QuotaUsedUp, "quota"},
		"no variable":        {bedrock(unset), script.Failure{Status: 500, Message: "never asked"}, llm.Unauthorized, "llm.credentials"},
		"API not enabled":    {vertex(google, "gemini-x"), script.Failure{Status: 403, Message: "Vertex AI API has not been used in project p before or it is disabled."}, llm.Unauthorized, "enable the Vertex AI API"},
		"no right at Google": {vertex(google, "claude-x"), script.Failure{Status: 403, Message: "Permission 'aiplatform.endpoints.predict' denied"}, llm.Unauthorized, "roles/aiplatform.user"},
		"no such model":      {vertex(google, "claude-x"), script.Failure{Status: 404, Message: "Publisher Model was not found"}, llm.UnknownModel, "llm.region"},
	} {
		made, err := script.New(script.Script{Rules: []script.Rule{{Answer: script.Answer{Error: &test.failure}}}})
		if err != nil {
			t.Fatal(err)
		}
		model, _ := llmtest.OverHTTP(test.connect, "")(t, made, llm.Endpoint{Model: "m"})
		_, err = model.Chat(t.Context(), llm.Request{Messages: []llm.Message{llm.UserText("hi")}}, nil)
		coded, is := task.AsError(err)
		if !is || llm.KindOf(err) != test.kind || !strings.Contains(coded.Hint, test.hint) || !strings.Contains(err.Error(), "the model provider "+model.Info().Provider) {
			t.Errorf("%s: %v, kind %s, %+v", name, err, llm.KindOf(err), coded)
		}
	}
}
