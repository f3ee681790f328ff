package config

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// Role is an entry of the section "roles".
type Role struct {
	Description   string   `key:"description" usual:"true" example:"Works on the services in Go and their database." about:"What the role is, in a sentence or two. The model is told it together with the name of the role."`
	PromptFile    string   `key:"prompt_file" format:"file" example:"prompts/backend.md" about:"File with what the role is told besides the task."`
	Network       string   `key:"network" enum:"none registries open" usual:"true" example:"registries" about:"What commands can reach while the work is done, in place of sandbox.network.execution."`
	Tools         []string `key:"tools" format:"label" example:"[read, search, edit, run, test]" about:"Tools that the role may use while the work is done; all of them if it names none."`
	ModelOverride `as:"llm_overrides"`
	Order         int `order:"true"` // place in the file among the roles, from 0
}

// RoleNames lists the labels of the roles in the order of the file.
func (c Config) RoleNames() []string {
	return slices.SortedFunc(maps.Keys(c.Roles), func(a, b string) int {
		return cmp.Compare(c.Roles[a].Order, c.Roles[b].Order)
	})
}

// Planning is the section "planning".
type Planning struct {
	Approval      string `key:"approval" default:"never" enum:"never label always" usual:"true" about:"Whether people have to approve the plan for an issue before anything is built: never, for issues with the label, or always. The plan is a comment; a thumbs-up on it, a comment that approves, or the page of the task lets the work begin."`
	ApprovalLabel string `key:"approval_label" default:"approve-plan" format:"label" about:"Label of issues whose plan has to be approved, where approval is label."`
}

// Label is the label of issues whose plan has to be approved, empty if there is none.
func (p Planning) Label() string {
	if p.Approval != "label" {
		return ""
	}
	return p.ApprovalLabel
}

// Review is the section "review".
type Review struct {
	Delay     time.Duration `key:"delay" default:"30m" min:"0s" max:"720h" usual:"true" about:"How long the label must be on before the bot reviews, so that people can go first."`
	Label     string        `key:"label" default:"needs-review" format:"label" usual:"true" about:"Label of what waits for a review."`
	OwnPulls  bool          `key:"own_pulls" default:"true" about:"Whether the bot puts the label on pull requests of its own that are ready, so that they are reviewed too when nobody does."`
	FixUpOn   []string      `key:"fix_up_on" enum:"review_comments mentions" default:"mentions" about:"What leads to changes on pull requests of the bot besides reviews that request them, from people who may steer it: review_comments are comments on lines and reviews that decide nothing, mentions are comments with the bot's @name. Replies in threads of the bot's own reviews are answered in the review chat instead."`
	MaxRounds int           `key:"max_rounds" default:"3" min:"0" max:"1000" about:"How often reviews of a pull request by the bot itself, and by people who may not write to the repository where these count, may ask for changes before a comment asks people to decide. The first decision of each person who may write begins the count anew. Comments of people who may write lead to changes three times as often, counted from the last such decision."`
}

// Merge is the section "merge".
type Merge struct {
	When string `key:"when" default:"never" enum:"never approved_and_green" about:"When the bot merges pull requests of its own. approved_and_green: somebody who may write to the repository has approved the head commit, nobody who counts requests changes, nobody who may write has asked for any in a comment since, and all checks have succeeded, of which at least one is not the bot's own: without continuous integration nothing is merged. The forge's own method and protection rules apply."`
}

// Checks is the section "checks".
type Checks struct {
	OnFailure   string        `key:"on_failure" enum:"fix report off" default:"fix" usual:"true" about:"What follows when checks fail that do not fail in the base branch: fix begins a task that makes them pass, report only names them in a comment, off does nothing."`
	MaxRounds   int           `key:"max_rounds" default:"2" min:"0" max:"1000" about:"How many tasks failed checks of a pull request begin before a comment asks people to decide. An assignment begins the count anew."`
	GiveUpAfter time.Duration `key:"give_up_after" default:"24h" min:"1m" max:"720h" about:"How long after the publication checks that do not end are asked for. A webhook is followed later too."`
}

// Priority is the section "priority".
type Priority struct {
	First []string `key:"first" format:"label" default:"priority:critical,priority:high" about:"Labels of what comes first, the most urgent one first."`
	Last  []string `key:"last" format:"label" default:"priority:low" about:"Labels of what comes last, the least urgent one last."`
}

// Values gives each label a number: larger is sooner, and without a label it is 0.
func (p Priority) Values() map[string]int {
	values := make(map[string]int, len(p.First)+len(p.Last))
	for i, label := range p.Last {
		values[label] = -1 - i
	}
	for i, label := range p.First {
		values[label] = len(p.First) - i
	}
	return values
}

// Leases is the section "leases".
type Leases struct {
	Duration   time.Duration `key:"duration" default:"1m" min:"3s" max:"24h" about:"How long an agent that is not heard of keeps its task."`
	RenewEvery time.Duration `key:"renew_every" default:"15s" min:"1s" max:"8h" about:"How often an agent says that it is still there; less than half of the duration."`
}

// Executors is the section "executors". An empty command means the built-in
// executor.
type Executors struct {
	Development Command `key:"development" example:"[gemini, -p, '{{.Prompt}}']" about:"Command for development tasks."`
	Review      Command `key:"review" example:"[gemini, -p, '{{.Prompt}}']" about:"Command for reviews. What it writes to its standard output is the review; as JSON it may have verdict (approve, comment or request_changes), text and comments."`

	Image     string        `key:"image" format:"image" example:"registry.example.com/gemini:1" about:"Container image with the program, where sandboxes are containers; without it, that of the default environment."`
	Timeout   time.Duration `key:"timeout" default:"1h" min:"1s" max:"168h" about:"A command that takes longer is killed, and the task has failed."`
	Variables []string      `key:"variables" format:"variable" example:"[GEMINI_API_KEY]" about:"Names of environment variables of the agent that the program is given. What it runs in the repository can read them too."`
}

// Limits is the section "limits".
type Limits struct {
	PerRepository int `key:"per_repository" default:"0" min:"0" max:"100000" about:"Tasks of one repository."`
	PerAgent      int `key:"per_agent" default:"0" min:"0" max:"100000" about:"Tasks of one agent; an agent asks for no more than it can do at once."`
}
