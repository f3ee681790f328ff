package config

import (
	"path/filepath"

	"github.com/toryo-dev/toryo/internal/redact"
	"github.com/toryo-dev/toryo/internal/task"
)

// Config is everything that can be configured.
type Config struct {
	Language    string `key:"language" default:"auto" enum:"auto ja en" usual:"true" about:"Language of what the bot writes on a forge; auto follows the text of the issue."`
	DataDir     string `key:"data_dir" default:"data" format:"path" usual:"true" about:"Folder for the database, git mirrors and everything else that Toryo keeps."`
	ContextsDir string `key:"contexts_dir" default:"contexts" format:"path" about:"Folder for the context files of runs; a relative path is inside data_dir."`

	Server   Server   `key:"server" about:"The HTTP server: API, webhooks, git and web pages."`
	Database Database `key:"database" about:"Where tasks, events and reviews are stored."`

	GitHub GitHub `key:"github" about:"GitHub, or GitHub Enterprise by its url."`
	GitLab GitLab `key:"gitlab" about:"GitLab, or a self-managed GitLab by its url."`
	Gitea  Gitea  `key:"gitea" about:"Gitea or Forgejo."`

	LLM             LLM             `key:"llm" about:"The model."`
	CommandExecutor CommandExecutor `key:"command_executor" about:"Where the commands of a run are executed."`

	CommentDetection CommentDetection `key:"comment_detection" about:"Comments that people add while a task is being worked on."`
	TaskStop         TaskStop         `key:"task_stop" about:"Stopping a task by unassigning the bot."`
	PauseResume      PauseResume      `key:"pause_resume" about:"Pausing a task and taking it up again."`

	Log       Log       `key:"log" about:"What the program says about itself."`
	Telemetry Telemetry `key:"telemetry" about:"Traces for an OpenTelemetry collector."`
}

// Server is the section "server".
type Server struct {
	Addr string `key:"addr" default:"127.0.0.1:8750" format:"address" usual:"true" about:"Address to listen on, as host:port."`
}

// Database is the section "database".
type Database struct {
	Driver  string        `key:"driver" default:"sqlite" enum:"sqlite postgres" usual:"true" about:"sqlite is one file in data_dir; postgres lets several servers share the work."`
	URL     redact.Secret `key:"url" format:"postgres" about:"Connection URL of PostgreSQL; it is a secret because it holds a password."`
	URLFile string        `key:"url_file" about:"File that holds the connection URL and nothing else."`
}

// GitHub is the section "github".
type GitHub struct {
	URL       string        `key:"url" default:"https://github.com" format:"url" about:"Address of the forge."`
	Owner     string        `key:"owner" format:"name" example:"my-organisation" about:"User or organisation whose repositories are worked on."`
	BotName   string        `key:"bot_name" format:"name" example:"toryo-bot" about:"Account of the bot: assigning it starts a task, unassigning it stops it."`
	Token     redact.Secret `key:"token" about:"Access token of the bot."`
	TokenFile string        `key:"token_file" example:"/run/secrets/github-token" about:"File that holds the access token and nothing else."`
	Labels
}

// GitLab is the section "gitlab".
type GitLab struct {
	URL       string        `key:"url" default:"https://gitlab.com" format:"url" about:"Address of the forge."`
	Projects  []string      `key:"projects" format:"project" example:"[group/project]" about:"Projects that are worked on."`
	BotName   string        `key:"bot_name" format:"name" example:"toryo-bot" about:"Account of the bot: assigning it starts a task, unassigning it stops it."`
	Token     redact.Secret `key:"token" about:"Access token of the bot."`
	TokenFile string        `key:"token_file" example:"/run/secrets/gitlab-token" about:"File that holds the access token and nothing else."`
	Labels
}

// Gitea is the section "gitea".
type Gitea struct {
	URL       string        `key:"url" format:"url" example:"https://gitea.example.com" about:"Address of the forge."`
	Owner     string        `key:"owner" format:"name" example:"my-organisation" about:"User or organisation whose repositories are worked on."`
	BotName   string        `key:"bot_name" format:"name" example:"toryo-bot" about:"Account of the bot: assigning it starts a task, unassigning it stops it."`
	Token     redact.Secret `key:"token" about:"Access token of the bot."`
	TokenFile string        `key:"token_file" example:"/run/secrets/gitea-token" about:"File that holds the access token and nothing else."`
	Labels
}

// Labels are the texts of the state labels on one forge. Their defaults are
// those of [task.DefaultLabelNames].
type Labels struct {
	Bot        string `key:"bot_label" format:"label" about:"Label of a task that waits."`
	Processing string `key:"processing_label" format:"label" about:"Label of a task that is being worked on."`
	Paused     string `key:"paused_label" format:"label" about:"Label of a paused task."`
	Stopped    string `key:"stopped_label" format:"label" about:"Label of a task that a person stopped."`
	Done       string `key:"done_label" format:"label" about:"Label of a finished task."`
	Failed     string `key:"failed_label" format:"label" about:"Label of a task that failed."`
}

// Names gives the labels in the form in which the rest of Toryo uses them.
func (l Labels) Names() task.LabelNames {
	return task.LabelNames{
		task.BotLabel:        l.Bot,
		task.ProcessingLabel: l.Processing,
		task.PausedLabel:     l.Paused,
		task.StoppedLabel:    l.Stopped,
		task.DoneLabel:       l.Done,
		task.FailedLabel:     l.Failed,
	}
}

// LLM is the section "llm".
type LLM struct {
	Provider      string        `key:"provider" enum:"anthropic openai gemini script" usual:"true" about:"Whose API is spoken; openai also serves compatible servers, script is the scripted model of tests and the demo."`
	Model         string        `key:"model" format:"word" usual:"true" about:"Name of the model, as the provider spells it."`
	BaseURL       string        `key:"base_url" format:"url" example:"http://127.0.0.1:11434/v1" about:"Address of the API, when it is not the provider's own."`
	APIKey        redact.Secret `key:"api_key" about:"Key for the API."`
	APIKeyFile    string        `key:"api_key_file" example:"/run/secrets/llm-api-key" about:"File that holds the key and nothing else."`
	MaxTokens     int           `key:"max_tokens" default:"8192" min:"1" max:"10000000" about:"Longest answer of the model, in tokens."`
	ContextLength int           `key:"context_length" default:"128000" min:"1024" max:"100000000" about:"How many tokens the model can take in, its answer included."`
	Temperature   *float64      `key:"temperature" min:"0" max:"2" example:"0.2" about:"Sampling temperature; without it the model's own is used."`
	Prices        Prices        `key:"prices" about:"What a million tokens cost, in your currency; 0 means unknown."`
}

// Prices is the section "llm.prices".
type Prices struct {
	Input  float64 `key:"input" default:"0" min:"0" max:"1000000" about:"Tokens that are sent."`
	Cached float64 `key:"cached" default:"0" min:"0" max:"1000000" about:"Sent tokens that the provider had in its cache."`
	Output float64 `key:"output" default:"0" min:"0" max:"1000000" about:"Tokens that are answered."`
}

// CommandExecutor is the section "command_executor".
type CommandExecutor struct {
	Environments       map[string]string `key:"environments" default:"python=python:3.11 miniforge=condaforge/miniforge3:latest node=node:22 java=maven:3-eclipse-temurin-21 go=golang:1.26" format:"image" about:"Container image of each environment; you can add environments of your own."`
	DefaultEnvironment string            `key:"default_environment" default:"python" format:"word" usual:"true" about:"Environment of a project whose language cannot be told."`
}

// CommentDetection is the section "comment_detection".
type CommentDetection struct {
	Enabled       bool `key:"enabled" default:"true" usual:"true" about:"Whether new comments are taken up during the work."`
	CheckInterval int  `key:"check_interval" default:"1" min:"1" max:"1000" usual:"true" about:"Look every so many turns of the model."`
}

// TaskStop is the section "task_stop".
type TaskStop struct {
	Enabled       bool `key:"enabled" default:"true" usual:"true" about:"Whether a task stops when the bot is unassigned."`
	CheckInterval int  `key:"check_interval" default:"1" min:"1" max:"1000" usual:"true" about:"Look every so many turns of the model."`
}

// PauseResume is the section "pause_resume".
type PauseResume struct {
	Enabled              bool `key:"enabled" default:"true" usual:"true" about:"Whether tasks can be paused."`
	CheckInterval        int  `key:"check_interval" default:"1" min:"1" max:"1000" usual:"true" about:"Look every so many turns of the model."`
	PausedTaskExpiryDays int  `key:"paused_task_expiry_days" default:"30" min:"1" max:"36500" usual:"true" about:"A task that is paused for longer is stopped."`
}

// Log is the section "log".
type Log struct {
	Level  string `key:"level" default:"info" enum:"debug info warn error" usual:"true" about:"The least important messages that are still written."`
	Format string `key:"format" default:"text" enum:"text json" about:"text for people, json for programs."`
}

// Telemetry is the section "telemetry".
type Telemetry struct {
	OTLPEndpoint string `key:"otlp_endpoint" format:"url" example:"http://127.0.0.1:4318" about:"Address of the collector; without it no traces are sent."`
}

// Default is the configuration when nobody sets anything.
func Default() Config { return keys().defaults() }

// ConfiguredForges lists the forges that the configuration says something about:
// a credential, whose repositories, or an address of its own. The built-in board
// needs no configuration and is not among them.
func (c Config) ConfiguredForges() []task.Forge {
	usual := Default()
	var forges []task.Forge
	if c.GitHub.Token != "" || c.GitHub.TokenFile != "" || c.GitHub.Owner != "" || c.GitHub.URL != usual.GitHub.URL {
		forges = append(forges, task.GitHub)
	}
	if c.GitLab.Token != "" || c.GitLab.TokenFile != "" || len(c.GitLab.Projects) > 0 || c.GitLab.URL != usual.GitLab.URL {
		forges = append(forges, task.GitLab)
	}
	if c.Gitea.Token != "" || c.Gitea.TokenFile != "" || c.Gitea.Owner != "" || c.Gitea.URL != usual.Gitea.URL {
		forges = append(forges, task.Gitea)
	}
	return forges
}

// LabelNames gives the texts of the state labels on a forge; the board has those
// of the specifications.
func (c Config) LabelNames(forge task.Forge) task.LabelNames {
	switch forge {
	case task.GitHub:
		return c.GitHub.Names()
	case task.GitLab:
		return c.GitLab.Names()
	case task.Gitea:
		return c.Gitea.Names()
	default:
		return task.DefaultLabelNames()
	}
}

// ContextsPath is the folder of the context files.
func (c Config) ContextsPath() string {
	if filepath.IsAbs(c.ContextsDir) {
		return c.ContextsDir
	}
	return filepath.Join(c.DataDir, c.ContextsDir)
}
