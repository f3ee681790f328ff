package config

import (
	"path/filepath"
	"time"

	"github.com/toryo-dev/toryo/internal/redact"
)

// Config is everything that can be configured.
type Config struct {
	Language    string `key:"language" default:"auto" enum:"auto ja en" usual:"true" about:"Language of what the bot writes on a forge; auto follows the text of the issue."`
	DataDir     string `key:"data_dir" default:"data" format:"path" usual:"true" about:"Folder for the database, git mirrors and everything else that Toryo keeps. A relative path counts from the folder of this file."`
	ContextsDir string `key:"contexts_dir" default:"contexts" format:"path" about:"Folder for the context files of runs; a relative path is inside data_dir."`
	PromptsDir  string `key:"prompts_dir" format:"path" example:"prompts" about:"Folder with files that replace built-in prompts, by their names: those of runs, of reviews and of the chat about them, such as planning.md, review.md and review_chat_system_en.md."`

	MaxAttempts  int           `key:"max_attempts" default:"3" min:"1" max:"1000" about:"How many runs a task gets when its agents are lost or its commit is missing, before it counts as failed."`
	SyncInterval time.Duration `key:"sync_interval" default:"1m" min:"1s" max:"24h" about:"How often the forges are asked for what webhooks did not bring."`

	Polling Polling `key:"polling" about:"How often a forge is asked about the items of running tasks. It is asked less often about what webhooks tell of, as far as they have proved reliable: see docs/forges.md."`

	Server   Server   `key:"server" about:"The HTTP server: API, webhooks, git and web pages."`
	OIDC     OIDC     `key:"oidc" about:"Signing in to the pages by OpenID Connect, besides with passwords."`
	Agent    Agent    `key:"agent" about:"An agent on a machine of its own: toryo agent."`
	Database Database `key:"database" about:"Where tasks, events and reviews are stored."`

	GitHub GitHub `key:"github" about:"GitHub, or GitHub Enterprise by its url."`
	GitLab GitLab `key:"gitlab" about:"GitLab, or a self-managed GitLab by its url."`
	Gitea  Gitea  `key:"gitea" about:"Gitea or Forgejo."`

	LLM            LLM                      `key:"llm" about:"The model."`
	LLMOverrides   map[string]ModelOverride `key:"llm_overrides" names:"label" example:"summary" about:"Another model for a phase (pre_planning, planning, environment_setup, execution, reflection, verification, complete), for summaries (summary), for the chat about reviews (chat), for reviews of documents (review) or for a role of roles. What is not set is as in llm."`
	ContextStorage ContextStorage           `key:"context_storage" about:"What happens when a conversation with the model grows long."`
	Budget         Budget                   `key:"budget" about:"What the model may cost; a run that is out of budget pauses. 0 means no limit."`
	MCPServers     map[string]MCPServer     `key:"mcp_servers" names:"server" example:"tickets" about:"MCP servers whose tools the model can use; the name of a server begins the names of its tools."`

	CommandExecutor CommandExecutor `key:"command_executor" about:"Environments in which the commands of a run are executed."`
	Sandbox         Sandbox         `key:"sandbox" about:"What the commands of a run are confined to."`

	Roles       map[string]Role `key:"roles" names:"label" example:"BACKENDCODER" about:"Roles by the label that asks for them. Of several on one issue, the role that stands first here counts."`
	DefaultRole string          `key:"default_role" default:"CODER" format:"label" about:"Role of an issue without a role label."`
	Priority    Priority        `key:"priority" about:"Labels that say what is more urgent."`
	Planning    Planning        `key:"planning" about:"The plan of a task: see docs/runs.md."`
	Review      Review          `key:"review" about:"Reviews that are due by themselves."`
	Merge       Merge           `key:"merge" about:"Merging pull requests that are ready."`
	Checks      Checks          `key:"checks" about:"Checks (statuses, workflows, pipelines) of commits that the bot has published: see docs/checks.md."`
	Executors   Executors       `key:"executors" about:"Programs of your own that do the work in place of the built-in one. A command is a list of words; {{.Prompt}} in one is replaced by the prompt."`
	Publishing  Publishing      `key:"publishing" about:"What the server looks for in the work of a run before it publishes it: see docs/publishing.md."`
	Git         Git             `key:"git" about:"Who published commits are by: see docs/publishing.md."`
	Leases      Leases          `key:"leases" about:"An agent's hold on its task."`
	Limits      Limits          `key:"limits" about:"How many tasks run at the same time. 0 means no limit."`

	CommentDetection CommentDetection `key:"comment_detection" about:"Comments that people add while a task is being worked on."`
	TaskStop         TaskStop         `key:"task_stop" about:"Stopping a task by unassigning the bot."`
	PauseResume      PauseResume      `key:"pause_resume" about:"Pausing a task and taking it up again."`

	Memory Memory `key:"memory" about:"Notes from reviews, which later tasks of the same repository are given: see docs/memory.md."`

	Retention Retention `key:"retention" about:"For how many days what is kept; 0 means for ever. See docs/operations.md."`

	Notifications Notifications `key:"notifications" about:"Telling people what waits for them: see docs/notifications.md."`

	Log       Log       `key:"log" about:"What the program says about itself."`
	Telemetry Telemetry `key:"telemetry" about:"Traces for an OpenTelemetry collector."`

	// VendorKeys are the keys of providers that were found in the variables of other
	// programs. [Config.ModelFor] gives them to models that have no key.
	VendorKeys map[string]redact.Secret
	// CloudVariables are the variables of the clouds' own programs; see readCloudVariables.
	CloudVariables *CloudVariables
	// Passed are the values of the environment variables that programs are given: those that
	// executors.variables and mcp_servers name, and no others.
	Passed []redact.Secret `key:"-"`
}

// Server is the section "server".
type Server struct {
	Addr      string `key:"addr" default:"127.0.0.1:8750" format:"address" usual:"true" about:"Address to listen on, as host:port."`
	PublicURL string `key:"public_url" format:"origin" example:"https://toryo.example.com" about:"Address under which people reach the server. Links in comments and on the board begin with it; without it, with the address to listen on."`

	TLSCertFile string `key:"tls_cert_file" format:"file" example:"/etc/toryo/tls.crt" about:"File with the certificate, and those above it, in PEM; with it the server speaks HTTPS. A renewed file is loaded automatically."`
	TLSKeyFile  string `key:"tls_key_file" format:"file" example:"/etc/toryo/tls.key" about:"File with the private key of the certificate, in PEM."`

	RequestsPerToken   int `key:"requests_per_token" default:"100" min:"0" max:"1000000" about:"Requests in a second that are answered for one token. 0 means no limit."`
	RequestsPerAddress int `key:"requests_per_address" default:"1000" min:"0" max:"1000000" about:"Requests in a second that are answered for one address; behind a proxy all have one address. 0 means no limit."`
}

// OIDC is the section "oidc".
type OIDC struct {
	Issuer           string        `key:"issuer" format:"url" example:"https://id.example.com" about:"Address of the provider, exactly as it calls itself; without it people sign in with passwords only."`
	ClientID         string        `key:"client_id" format:"word" example:"toryo" about:"Name under which Toryo is registered with the provider."`
	ClientSecret     redact.Secret `key:"client_secret" about:"Secret of that registration."`
	ClientSecretFile string        `key:"client_secret_file" example:"/run/secrets/oidc-client-secret" about:"File that holds the secret and nothing else."`
	RedirectURL      string        `key:"redirect_url" format:"url" example:"https://toryo.example.com/signin/oidc/callback" about:"Address to which browsers come back, as it is registered with the provider: that of the pages, with /signin/oidc/callback behind it."`
	Name             string        `key:"name" example:"our company" about:"What the button to sign in calls the provider; without it, its host."`
	Scopes           []string      `key:"scopes" default:"profile,email" format:"word" about:"What is asked for besides openid; many providers tell groups only when asked for groups."`
	LoginClaim       string        `key:"login_claim" default:"preferred_username" format:"word" about:"Claim with the login."`
	GroupsClaim      string        `key:"groups_claim" default:"groups" format:"word" about:"Claim with the groups; dots lead into objects, as in realm_access.roles."`
	AdminGroups      []string      `key:"admin_groups" format:"label" example:"[platform]" about:"Groups whose people are admins."`
	OperatorGroups   []string      `key:"operator_groups" format:"label" example:"[developers]" about:"Groups whose people are operators."`
	ViewerGroups     []string      `key:"viewer_groups" format:"label" example:"[staff]" about:"Groups whose people are viewers."`
	Users            []string      `key:"users" format:"word" example:"[alice]" about:"Logins of people who are let in without one of these groups, as viewers; '*' means everyone whom the provider knows."`
}

// Agent is the section "agent".
type Agent struct {
	Server    string        `key:"server" format:"url" example:"https://toryo.example.com" about:"Address of the server."`
	Name      string        `key:"name" about:"What the agent is called; without it, the name that its token was given."`
	Parallel  int           `key:"parallel" default:"1" min:"1" max:"1000" about:"How many tasks the agent works on at the same time; limits.per_agent of the server holds too."`
	Token     redact.Secret `key:"token" about:"Token of the agent. Without one, that which it got when it enrolled."`
	TokenFile string        `key:"token_file" example:"/run/secrets/agent-token" about:"File that holds the token and nothing else."`
	CAFile    string        `key:"ca_file" format:"file" example:"/etc/toryo/ca.crt" about:"File with the certificates in PEM by which the server is known, besides those of the system."`
}

// Database is the section "database".
type Database struct {
	Driver  string        `key:"driver" default:"sqlite" enum:"sqlite postgres" usual:"true" about:"sqlite is one file in data_dir; postgres lets several servers share the work."`
	URL     redact.Secret `key:"url" format:"postgres" about:"Connection URL of PostgreSQL; it is a secret because it holds a password."`
	URLFile string        `key:"url_file" about:"File that holds the connection URL and nothing else."`
}

// CommandExecutor is the section "command_executor".
type CommandExecutor struct {
	Environments       map[string]string `key:"environments" default:"python=python:3.11 miniforge=condaforge/miniforge3:latest node=node:22 java=maven:3-eclipse-temurin-21 go=golang:1.26" format:"image" names:"environment" about:"Container image of each environment; you can add environments of your own."`
	DefaultEnvironment string            `key:"default_environment" default:"python" format:"word" usual:"true" about:"Environment of a project whose language cannot be told."`
	// Allowed is checked against what there is: see checkEnvironments.
	Allowed []string `key:"allowed_environments" format:"word" example:"[python, node]" about:"Names of the environments that are detected and that plans may select, the default one among them. Without any, all that Toryo knows and those of your own."`
}

// CommentDetection is the section "comment_detection".
type CommentDetection struct {
	Enabled        bool   `key:"enabled" default:"true" usual:"true" about:"Whether new comments are included during the work. The answer to a question of the bot is included either way."`
	CheckInterval  int    `key:"check_interval" default:"1" min:"1" max:"1000" usual:"true" about:"Look every so many turns of the model."`
	AcceptFrom     string `key:"accept_from" default:"write_or_author" enum:"write_or_author write participants all" usual:"true" about:"Who may steer the work by comments and reviews: people who may write to the repository and the author of the issue or pull request; only people who may write; those who take part too (assignees, and who had commented before the task began); or everyone who can comment. What others say is recorded with the reason and not included."`
	ReviewComments bool   `key:"review_comments" default:"true" about:"Whether reviews of a pull request, their texts and the comments on lines, count too."`
}

// Publishing is the section "publishing".
type Publishing struct {
	Allow   []string `key:"allow" format:"glob" example:"['docs/**/*.png', '.github/workflows/*.yml']" about:"Patterns of files in which only secrets of this installation are looked for. A pattern without a slash is that of a name in any folder; ** stands for any folders."`
	Protect []string `key:"protect" format:"glob" example:"['deploy/**', 'terraform/**']" about:"Patterns of files that are protected besides those known to Toryo."`
	Unasked string   `key:"unasked" default:"draft" enum:"draft refuse" about:"What becomes of work in which the model leaves something that nobody asked for: a draft that says so, or nothing is published. Choose refuse where pushing a branch runs what is in it with secrets."`
	MaxDiff ByteSize `key:"max_diff" default:"16MiB" min:"64KiB" max:"1GiB" about:"A larger change is too large to be looked at, and is not published."`
}

// Git is the section "git".
type Git struct {
	Name           string        `key:"name" default:"Toryo" format:"person" about:"Name of the bot as the author and committer of what is published."`
	Email          string        `key:"email" format:"mail" example:"toryo-bot@example.com" about:"Address of the bot's account on the forge, which shows its commits as the bot's then; without it toryo@localhost."`
	CoAuthors      bool          `key:"co_authors" default:"true" about:"Whether commits name the people who asked for the work, with an address that the forge shows of them."`
	SigningFormat  string        `key:"signing_format" default:"ssh" enum:"ssh openpgp" about:"What the key is; openpgp needs the gpg program."`
	SigningKey     redact.Secret `key:"signing_key" lines:"true" about:"Private key without a passphrase with which the server signs what it publishes."`
	SigningKeyFile string        `key:"signing_key_file" example:"/run/secrets/signing-key" about:"File that holds the key and nothing else."`
}

// TaskStop is the section "task_stop".
type TaskStop struct {
	Enabled bool `key:"enabled" default:"true" usual:"true" about:"Whether a task stops when the bot is unassigned. Closing the issue or pull request ends its tasks either way."`
}

// Memory is the section "memory".
type Memory struct {
	Enabled bool `key:"enabled" default:"true" about:"Whether what reviewers ask for is kept, and given to later tasks. Without it nothing is learned or given; notes that are there stay until somebody forgets them."`
}

// PauseResume is the section "pause_resume".
type PauseResume struct {
	Enabled              bool `key:"enabled" default:"true" usual:"true" about:"Whether tasks can be paused."`
	PausedTaskExpiryDays int  `key:"paused_task_expiry_days" default:"30" min:"1" max:"36500" usual:"true" about:"A task that is paused for longer is stopped."`

	AnswerWithin time.Duration `key:"answer_within" default:"24h" min:"1m" max:"8760h" about:"How long a run that has asked a question waits, paused, for a comment with the answer; then it decides by itself."`
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

// ContextsPath is the folder of the context files.
func (c Config) ContextsPath() string {
	if filepath.IsAbs(c.ContextsDir) {
		return c.ContextsDir
	}
	return filepath.Join(c.DataDir, c.ContextsDir)
}
