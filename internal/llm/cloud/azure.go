package cloud

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/llm"
)

const (
	azureScope     = "https://cognitiveservices.azure.com"
	azureAuthority = "https://login.microsoftonline.com"
	azureMachine   = "http://169.254.169.254/metadata/identity/oauth2/token"
)

// Azure returns the endpoint by which the OpenAI adapter reaches a deployment at Azure OpenAI.
func Azure(place Place, endpoint llm.Endpoint) (llm.Endpoint, error) {
	if endpoint.BaseURL == "" {
		return endpoint, missing("azure needs llm.base_url, the endpoint of the resource")
	}
	shows, err := place.microsoft(endpoint.Key)
	if err != nil {
		return endpoint, err
	}
	if place.Deployment != "" {
		endpoint.Model = place.Deployment
	}
	base := strings.TrimSuffix(strings.TrimSuffix(endpoint.BaseURL, "/"), "/openai/v1")
	if place.APIVersion == "" {
		endpoint.BaseURL = base + "/openai/v1"
	} else {
		endpoint.BaseURL = base + "/openai/deployments/" + url.PathEscape(endpoint.Model)
	}
	rewrite := func(request *http.Request, body []byte) ([]byte, error) {
		request.Header.Del("Authorization")
		if place.APIVersion != "" {
			if at, isResponses := strings.CutSuffix(request.URL.Path, "/responses"); isResponses { // which is not below the deployment
				before, _, _ := strings.Cut(at, "/deployments/")
				request.URL.Path, request.URL.RawPath = before+"/responses", ""
			}
			request.URL.RawQuery = url.Values{"api-version": {place.APIVersion}}.Encode()
		}
		return body, nil
	}
	endpoint.Own = true
	return through(endpoint, &transport{rewrite: rewrite, authorize: shows}), nil
}

// microsoft is how a request to Azure shows who asks.
func (p Place) microsoft(key string) (authorize, error) {
	switch {
	case p.isKey() && key == "":
		return nil, missing("azure needs a key or llm.credentials")
	case p.isKey():
		return func(_ context.Context, request *http.Request, _ []byte) error {
			request.Header.Set("Api-Key", key)
			return nil
		}, nil
	case p.Credentials == "token_file":
		return p.fromFile(), nil
	case p.Credentials == "environment":
		return bearer(keep(p.tokenOfClient).get), nil
	case p.Credentials == "workload":
		return bearer(keep(p.tokenOfWorkload).get), nil
	case p.Credentials == "metadata":
		return bearer(keep(p.tokenOfAzureMachine).get), nil
	}
	return nil, p.unknownCredentials("azure")
}

// tokenOfClient asks with the secret of an application.
func (p Place) tokenOfClient(ctx context.Context) (string, time.Time, error) {
	secret, err := p.variable("AZURE_CLIENT_SECRET")
	if err != nil {
		return "", time.Time{}, err
	}
	return p.tokenOfEntra(ctx, url.Values{"client_secret": {secret}})
}

// tokenOfWorkload asks with the token of a pod.
func (p Place) tokenOfWorkload(ctx context.Context) (string, time.Time, error) {
	file, err := p.variable("AZURE_FEDERATED_TOKEN_FILE")
	if err != nil {
		return "", time.Time{}, err
	}
	token, err := readFile(file)
	if err != nil {
		return "", time.Time{}, err
	}
	return p.tokenOfEntra(ctx, url.Values{
		"client_assertion_type": {"urn:ietf:params:oauth:client-assertion-type:jwt-bearer"}, "client_assertion": {token},
	})
}

func (p Place) tokenOfEntra(ctx context.Context, form url.Values) (string, time.Time, error) {
	tenant, err := p.variable("AZURE_TENANT_ID")
	if err != nil {
		return "", time.Time{}, err
	}
	client, err := p.variable("AZURE_CLIENT_ID")
	if err != nil {
		return "", time.Time{}, err
	}
	form.Set("grant_type", "client_credentials")
	form.Set("client_id", client)
	form.Set("scope", azureScope+"/.default")
	authority := strings.TrimSuffix(p.optional("AZURE_AUTHORITY_HOST"), "/")
	if !strings.HasPrefix(authority, "https://") {
		authority = azureAuthority
	}
	return p.postForm(ctx, authority+"/"+url.PathEscape(tenant)+"/oauth2/v2.0/token", form)
}

// tokenOfAzureMachine asks for the managed identity of the machine.
func (p Place) tokenOfAzureMachine(ctx context.Context) (string, time.Time, error) {
	query := url.Values{"api-version": {"2018-02-01"}, "resource": {azureScope}}
	if client := p.optional("AZURE_CLIENT_ID"); client != "" { // one of several identities
		query.Set("client_id", client)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, azureMachine+"?"+query.Encode(), http.NoBody)
	if err != nil {
		return "", time.Time{}, refused(err)
	}
	request.Header.Set("Metadata", "true")
	body, err := ask(p.client(true), request)
	if err != nil {
		return "", time.Time{}, err
	}
	return readToken(body)
}
