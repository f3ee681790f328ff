package command

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/connect"
	"github.com/toryo-dev/toryo/internal/app/doctor"
	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/task"
)

// askModel asks for the model until one works, or none is wanted.
func (i *interview) askModel(ctx context.Context) error {
	now := i.at.loaded.LLM
	likely := connect.Model{Provider: now.Provider, Name: now.Model, BaseURL: now.BaseURL, Script: now.Script, Cloud: now.Cloud}
	if likely.Provider == "" && len(i.found.Keys) > 0 {
		likely.Provider = i.found.Keys[0].Provider
	}
	for {
		model, err := i.askModelOnce(ctx, likely)
		if err != nil {
			return err
		}
		if model.Provider == "" {
			i.say("  ! Without a model tasks wait. Set llm in toryo.yaml, or run toryo init again.")
			return nil
		}
		finding := i.tryModel(ctx, model)
		if finding.Status == doctor.OK {
			i.say("  ✓ %s", finding.Found)
			i.answers.Model = model
			return nil
		}
		failed := task.Errorf(task.NotReady, "the model does not work: %s", finding.Found).WithHint("%s", finding.Hint)
		if i.terminal == nil || i.yes || i.provider != "" || ctx.Err() != nil {
			return failed
		}
		i.sayWrong(failed)
		likely, i.again = model, true
	}
}

// askModelOnce asks for a model and its key.
func (i *interview) askModelOnce(ctx context.Context, likely connect.Model) (connect.Model, error) {
	usual := likely.Provider
	if usual == "" && i.terminal != nil && !i.yes {
		usual = answerNone
	}
	provider, err := i.answer(ctx, initQuestion{
		text: "Whose model: anthropic, openai (or a server that speaks its API), gemini, azure, bedrock, vertex, none", flag: "provider", given: i.provider, usual: usual,
		check: func(answer string) error {
			return oneOf(answer, fewValues["provider"])
		},
	})
	if err != nil || provider == answerNone {
		return connect.Model{}, err
	}
	if provider != likely.Provider {
		likely = connect.Model{}
	}
	model := connect.Model{Provider: provider}
	if provider == "script" {
		model.Name = i.model
		model.Script, err = i.askScript(ctx, likely.Script)
		return model, err
	}
	if model.BaseURL, err = i.askBaseURL(ctx, provider, likely.BaseURL); err != nil {
		return model, err
	}
	if model.Cloud, err = i.askCloud(ctx, provider, likely.Cloud); err != nil {
		return model, err
	}
	if model.Cloud.Credentials == "" || model.Cloud.Credentials == "key" {
		if model.Key, err = i.askKey(ctx, model); err != nil {
			return model, err
		}
	}
	model.Name, err = i.askModelName(ctx, model, likely.Name)
	return model, err
}

// modelsShown is how many models are shown to choose from.
const modelsShown = 20

// askModelName asks for the name of the model, and shows those that there are.
func (i *interview) askModelName(ctx context.Context, model connect.Model, likely string) (string, error) {
	var all []string
	if i.model == "" && i.terminal != nil && !i.yes {
		llm := config.LLM{Provider: model.Provider, BaseURL: model.BaseURL, APIKey: model.Key.Value}
		all, _ = connect.Models(ctx, i.client, llm) // who knows the name needs no list
		for number, name := range all[:min(len(all), modelsShown)] {
			i.say("  %2d  %s", number+1, name)
		}
	}
	answer, err := i.answer(ctx, initQuestion{
		text: "Model, by number or as the provider spells it", flag: "model", given: i.model, usual: likely,
		check: func(answer string) error {
			name, err := oneChosen(answer, all)
			if err != nil {
				return err
			}
			return config.CheckValue("llm.model", name)
		},
	})
	if err != nil {
		return "", err
	}
	return oneChosen(answer, all)
}

// oneChosen is what a number in a list stands for.
func oneChosen(answer string, all []string) (string, error) {
	number, err := strconv.Atoi(answer)
	if err != nil || len(all) == 0 {
		return answer, nil //nolint:nilerr // it is a name
	}
	if number < 1 || number > len(all) {
		return "", task.Errorf(task.Invalid, "there is no number %d in the list", number)
	}
	return all[number-1], nil
}

func (i *interview) askScript(ctx context.Context, likely string) (string, error) {
	answer, err := i.answer(ctx, initQuestion{
		text: "File that the scripted model follows", flag: "script", given: i.script, usual: likely,
		check: func(answer string) error { return i.checkScript(ctx, answer) },
	})
	if err != nil {
		return "", err
	}
	return filepath.Abs(answer)
}

func (i *interview) checkScript(ctx context.Context, file string) error {
	full, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	if _, err := os.Stat(full); err != nil {
		return task.Wrap(task.Invalid, err, "the script cannot be read")
	}
	if !i.serviceReads(ctx, full) {
		return task.Errorf(task.Invalid, "%s cannot read %s", i.owned, file).WithHint("put it where that user can read it, such as %s", filepath.Dir(i.at.file))
	}
	return nil
}

// askBaseURL asks where the model is, if that may be elsewhere than at its provider.
func (i *interview) askBaseURL(ctx context.Context, provider, likely string) (string, error) {
	if provider == "azure" {
		return i.answer(ctx, initQuestion{
			text: "Endpoint of the resource, such as https://NAME.openai.azure.com", flag: "base-url", given: i.baseURL, usual: likely,
			check: func(answer string) error { return config.CheckValue("llm.base_url", answer) },
		})
	}
	if provider != "openai" && i.baseURL == "" && likely == "" {
		return "", nil
	}
	return i.answer(ctx, initQuestion{
		text: "Address of the API, if it is not the provider's own", flag: "base-url", given: i.baseURL, usual: likely, optional: true,
		check: func(answer string) error { return config.CheckValue("llm.base_url", answer) },
	})
}

// askCloud asks where a model of a cloud is, and how it is told who asks. What else there is can be
// set in the file, and is kept.
func (i *interview) askCloud(ctx context.Context, provider string, likely config.Cloud) (config.Cloud, error) {
	if !slices.Contains(config.CloudProviders, provider) {
		return config.Cloud{}, nil
	}
	cloud := likely
	for _, one := range []struct {
		asked             bool
		to                *string
		text, flag, given string
	}{
		{provider != "azure", &cloud.Region, "Region of the model", "region", i.cloud.Region},
		{provider == "vertex", &cloud.Project, "Project of Google Cloud", "project", i.cloud.Project},
		{true, &cloud.Credentials, "How it knows who asks: key, environment, file, token_file, workload, metadata", "credentials", i.cloud.Credentials},
		{i.cloud.CredentialsFile != "", &cloud.CredentialsFile, "File with the credentials", "credentials-file", i.cloud.CredentialsFile},
	} {
		if !one.asked {
			continue
		}
		usual := *one.to
		if usual == "" && one.flag == "credentials" {
			usual = "key"
		}
		answer, err := i.answer(ctx, initQuestion{
			text: one.text, flag: one.flag, given: one.given, usual: usual,
			check: func(answer string) error {
				return config.CheckValue("llm."+strings.ReplaceAll(one.flag, "-", "_"), answer)
			},
		})
		if err != nil {
			return cloud, err
		}
		*one.to = answer
	}
	return cloud, nil
}

// askKey finds the key of the model.
func (i *interview) askKey(ctx context.Context, model connect.Model) (connect.Secret, error) {
	if i.modelKeyFile != "" {
		return i.secretOfFlag(ctx, "model-key-file", i.modelKeyFile, "llm.api_key")
	}
	now := i.at.loaded.LLM
	llm := config.LLM{Provider: model.Provider, BaseURL: model.BaseURL}
	if now.APIKey != "" && now.Provider == model.Provider && now.BaseURL == model.BaseURL && !i.again {
		return connect.Secret{Value: now.APIKey, Configured: true}, nil
	}
	if variable := llm.KeyVariable(i.Environ); variable != "" && !i.again {
		return i.secretOfVariable(connect.Secret{Value: llm.FindKey(i.Environ), Variable: variable}, "llm.api_key", "key", "the server or an agent is"), nil
	}
	if err := i.notOverridden("llm.api_key", ""); err != nil {
		return connect.Secret{}, err
	}
	answer, err := i.answer(ctx, initQuestion{
		text: "Key of the model (it is not shown)", flag: "model-key-file", hidden: true, optional: model.BaseURL != "",
	})
	return connect.Secret{Value: secretOf(answer)}, err
}

// tryModel makes one short call. A script is only read: each question would count as one of
// its own.
func (i *interview) tryModel(ctx context.Context, model connect.Model) doctor.Finding {
	c := i.at.loaded
	now := c.LLM
	c.LLM = config.Default().LLM
	if now.Provider == model.Provider {
		c.LLM = now // with its limits
	}
	c.LLM.Provider, c.LLM.Model, c.LLM.BaseURL, c.LLM.Script, c.LLM.APIKey = model.Provider, model.Name, model.BaseURL, model.Script, model.Key.Value
	c.LLM.Cloud = model.Cloud
	if model.Cloud.Credentials != "" { // the file that is there may name no cloud, so that they were not read
		c = c.WithCloudVariables(i.Environ)
	}
	c.LLM.Retries, c.LLM.Fallback = 0, config.ModelOverride{}
	return doctor.Model(ctx, c.LLM, func(ctx context.Context) (string, error) {
		if model.Provider == "script" {
			_, err := site.Connect(c.LLM)
			return "can be read (a script is not asked)", err
		}
		answered, err := askOnce(ctx, i.Program, c, question{text: "Answer with the word yes.", most: 16})
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("answered after %s", answered.took), nil
	})
}
