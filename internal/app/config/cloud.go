package config

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/redact"
)

// Cloud is what the providers azure, bedrock and vertex need besides a model: where it is, and
// how its server is told who asks.
type Cloud struct {
	Region          string `key:"region" format:"region" example:"eu-central-1" about:"Region of the model: for bedrock such as eu-central-1, for vertex such as europe-west1 or global."`
	Project         string `key:"project" format:"region" example:"my-project" about:"Project of Google Cloud that pays for vertex."`
	Deployment      string `key:"deployment" format:"word" example:"team-model" about:"Name of the deployment of azure, if it is not the name of the model."`
	APIVersion      string `key:"api_version" format:"word" example:"2024-10-21" about:"Dated version of the API of azure; without it the path openai/v1 is used, which needs none."`
	Credentials     string `key:"credentials" enum:"key environment file token_file workload metadata" example:"metadata" about:"How azure, bedrock and vertex know who asks: key is api_key, environment the variables of the cloud's own programs, file and token_file the file in credentials_file, workload the identity of a pod, metadata that of the machine; without it key."`
	CredentialsFile string `key:"credentials_file" format:"file" example:"/run/secrets/service-account.json" about:"With credentials file the shared credentials of AWS or the key of a service account of Google, with token_file an access token, which is read again for each call."`
	Profile         string `key:"profile" format:"word" example:"models" about:"Profile in the shared credentials of AWS; without it AWS_PROFILE, or default."`
}

// over puts what is set over another.
func (c Cloud) over(other Cloud) Cloud {
	for _, one := range []struct {
		to   *string
		text string
	}{
		{&other.Region, c.Region}, {&other.Project, c.Project}, {&other.Deployment, c.Deployment}, {&other.APIVersion, c.APIVersion},
		{&other.Credentials, c.Credentials}, {&other.CredentialsFile, c.CredentialsFile}, {&other.Profile, c.Profile},
	} {
		if one.text != "" {
			*one.to = one.text
		}
	}
	return other
}

// CloudProviders are the providers that have models of others.
var CloudProviders = []string{"azure", "bedrock", "vertex"}

func (l LLM) isCloud() bool { return slices.Contains(CloudProviders, l.Provider) }

// isSupported says that the provider has the model by an API that is known.
func (l LLM) isSupported() bool {
	_, supported := llm.Spoken(l.Provider, l.Model)
	return supported
}

// asksByKey says that api_key shows a cloud who asks.
func (c Cloud) asksByKey() bool { return c.Credentials == "" || c.Credentials == "key" }

// credentialKinds are the ways of each cloud to say who asks, besides a key.
var credentialKinds = map[string][]string{
	"azure":   {"environment", "token_file", "workload", "metadata"},
	"bedrock": {"environment", "file", "token_file", "workload", "metadata"},
	"vertex":  {"file", "token_file", "metadata"},
}

// lackingInCloud is what a model of a cloud lacks, or nothing.
func (l LLM) lackingInCloud() string {
	kinds, is := credentialKinds[l.Provider]
	switch {
	case !is:
		return ""
	case l.Provider == "azure" && l.BaseURL == "":
		return "no base_url is set, which is the endpoint of the resource"
	case l.Provider != "azure" && l.Region == "":
		return "no region is set"
	case l.Provider == "vertex" && l.Project == "":
		return "no project is set"
	case l.asksByKey() && l.APIKey == "":
		return "no key is set, and no credentials"
	case !l.asksByKey() && !slices.Contains(kinds, l.Credentials):
		return "there are no credentials of the kind " + l.Credentials + "; there are key, " + strings.Join(kinds, ", ")
	case l.Credentials == "token_file" && l.CredentialsFile == "":
		return "no credentials_file is set"
	}
	return ""
}

// HintForCloud says how a model of a cloud is configured, empty for others.
func (l LLM) HintForCloud() string {
	if !l.isCloud() {
		return ""
	}
	return "set what is missing; docs/clouds.md has an example for " + l.Provider
}

// checkCloud checks the keys that are for clouds only, and that nothing is missing.
func (l *loader) checkCloud(at *section, llm LLM) {
	own := func(name string) string { return join(at.path, name) }
	for _, one := range []struct {
		key, value string
		providers  []string
	}{
		{"region", llm.Region, []string{"bedrock", "vertex"}}, {"project", llm.Project, []string{"vertex"}},
		{"deployment", llm.Deployment, []string{"azure"}}, {"api_version", llm.APIVersion, []string{"azure"}},
		{"credentials", llm.Credentials, CloudProviders}, {"credentials_file", llm.CredentialsFile, CloudProviders},
		{"profile", llm.Profile, []string{"bedrock"}},
	} {
		if l.anySet(own(one.key)) && one.value != "" && !slices.Contains(one.providers, llm.Provider) {
			names := strings.Join(one.providers, ", ")
			l.conflict(complain("remove it", "only %s has this", names), own(one.key))
		}
	}
	if llm.Model != "" && !llm.isSupported() && l.anySet(own("provider"), own("model")) {
		l.conflict(complain("docs/clouds.md says which are", "%s: the model %s is not supported", llm.Provider, show(llm.Model)), own("model"), own("provider"))
	}
	if llm.isCloud() && llm.asksByKey() && llm.APIKey == "" && l.anySet(own("provider"), own("base_url")) {
		secret, _ := at.find("api_key") // it may be in the environment of the service
		l.missingSecret(secret.key, llm.Provider+" needs a key or credentials, and there are none", llm.KeyVariables()[1:]...)
		llm.APIKey = "missing"
	}
	if lacks := llm.lackingInCloud(); lacks != "" && l.anySet(own("provider"), own("base_url")) && !l.anyBad(own("region"), own("project"), own("base_url"), own("credentials"), own("api_key"), own("api_key_file")) {
		l.conflict(complain(llm.HintForCloud(), "%s: %s", llm.Provider, lacks), own("provider"), own("base_url"))
	}
}

// CloudVariables are the values of environment variables of the clouds' own programs.
type CloudVariables map[string]redact.Secret

// cloudVariables are those that are read, and whether they hold a secret.
var cloudVariables = map[string]bool{
	"AWS_ACCESS_KEY_ID": false, "AWS_SECRET_ACCESS_KEY": true, "AWS_SESSION_TOKEN": true, "AWS_PROFILE": false,
	"AWS_SHARED_CREDENTIALS_FILE": false, "AWS_ROLE_ARN": false, "AWS_WEB_IDENTITY_TOKEN_FILE": false, "AWS_ROLE_SESSION_NAME": false,
	"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": false, "AWS_CONTAINER_CREDENTIALS_FULL_URI": false,
	"AWS_CONTAINER_AUTHORIZATION_TOKEN": true, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": false, "HOME": false, "USERPROFILE": false,
	"AZURE_TENANT_ID": false, "AZURE_CLIENT_ID": false, "AZURE_CLIENT_SECRET": true, "AZURE_FEDERATED_TOKEN_FILE": false, "AZURE_AUTHORITY_HOST": false,
	"GOOGLE_APPLICATION_CREDENTIALS": false,
}

// readCloudVariables notes the variables from which credentials of clouds are taken, where any
// are configured of another kind than key.
func (l *loader) readCloudVariables(environ []string) {
	if slices.ContainsFunc(l.config.clouds(), func(c Cloud) bool { return !c.asksByKey() }) {
		l.config = l.config.WithCloudVariables(environ)
	}
}

// clouds lists what the configuration says of clouds.
func (c Config) clouds() []Cloud {
	all := []Cloud{c.LLM.Cloud, c.LLM.Fallback.Cloud}
	for _, override := range c.LLMOverrides {
		all = append(all, override.Cloud)
	}
	for _, role := range c.Roles {
		all = append(all, role.Cloud)
	}
	return all
}

// WithCloudVariables is the configuration with the variables from which credentials of clouds
// are taken. Those that are secrets are among its secrets.
func (c Config) WithCloudVariables(environ []string) Config {
	found := CloudVariables{}
	for _, line := range environ {
		name, value, _ := strings.Cut(line, "=")
		if _, known := cloudVariables[name]; known && value != "" {
			found[name] = redact.Secret(value)
		}
	}
	c.CloudVariables = &found
	return c
}

// cloudSecrets are the values of those variables that hold a secret.
func (c Config) cloudSecrets() (all []redact.Secret) {
	if c.CloudVariables == nil {
		return nil
	}
	for name, value := range *c.CloudVariables {
		if cloudVariables[name] {
			all = append(all, value)
		}
	}
	return all
}

// Variable is the value of a variable of a cloud's own programs, or nothing.
func (l LLM) Variable(name string) string {
	if l.Variables == nil {
		return ""
	}
	return (*l.Variables)[name].Reveal()
}

// FallbackFor is the model that answers while that of the names is out, and whether there is
// one: a model is no fallback for itself.
func (c Config) FallbackFor(names ...string) (LLM, bool) {
	if c.LLM.Fallback == (ModelOverride{}) {
		return LLM{}, false
	}
	second, first := c.fallback(), c.ModelFor(names...)
	return second, second.Place() != first.Place()
}

// fallback is the second model, wherever it is used.
func (c Config) fallback() LLM { return c.withVendorKey(c.LLM.Fallback.over(c.LLM).Known()) }

// Place names a model together with the server that has it and the account that pays there, of
// which it shows nothing.
func (l LLM) Place() string {
	account := sha256.Sum256([]byte(strings.Join([]string{l.APIKey.Reveal(), l.Credentials, l.CredentialsFile, l.Profile}, "\x00")))
	return strings.Join([]string{l.Provider, l.BaseURL, l.Region, l.Project, l.Deployment, l.Model, l.Script, hex.EncodeToString(account[:8])}, " ")
}
