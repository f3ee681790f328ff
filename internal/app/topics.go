package app

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toryo-dev/toryo/internal/app/cli"
	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/task"
)

// topics are texts that toryo help prints, beside those about commands.
func topics() []*cobra.Command {
	all := []*cobra.Command{
		{Use: "configuration", Short: "Where the configuration is found, and every key with its default", Long: configurationTopic()},
		{Use: "environment", Short: "The environment variables that count", Long: environmentTopic()},
		{Use: "exit-codes", Short: "Explain the exit codes", Long: exitCodesTopic()},
		{Use: "labels", Short: "The labels that Toryo puts on items, and those that it reads", Long: labelsTopic()},
		{Use: "signals", Short: "How a task is stopped, paused, resumed and talked to", Long: signalsTopic},
		{Use: "task-names", Short: "How a task is named on the command line", Long: taskNamesTopic},
	}
	for _, one := range all {
		one.Long = strings.TrimSpace(one.Long)
	}
	return all
}

// exitCodesTopic is help on the exit codes, from the table of package task.
func exitCodesTopic() string {
	var text strings.Builder
	text.WriteString("Every way to fail has its own exit code:\n\n    0  success\n")
	for _, info := range task.Codes {
		fmt.Fprintf(&text, "  %3d  %s (%s)\n", info.Exit, info.Meaning, info.Code)
	}
	return text.String()
}

func configurationTopic() string {
	return `The configuration is one YAML file. Every command looks for it in the same way: the file that
--config names, or else ` + cli.DefaultFile + ` in the folder in which the command is called` + machineTopic() + `.
Environment variables go over the file, and flags over both.

The data directory is the one that --data names, or else data_dir of the configuration, which
counts from the folder of the file if it is relative. If nobody sets it, it is ` + defaultDataTopic() + `.

toryo config init writes a file with all of this, toryo config check finds what is wrong in one,
and toryo config check --print says what is in force and where each value comes from.

These are the keys with their defaults, and the variable of each in brackets:

` + config.Reference()
}

// machineTopic is about the configuration of the machine, where there can be one.
func machineTopic() string {
	if config.Machine.File == "" {
		return ""
	}
	return `, or else
` + config.Machine.File + `. That is of the server of the machine: toryo run, toryo env and commands
with --server do without it. Others fail if this user may not read it`
}

func defaultDataTopic() string {
	text := "data in the folder\nin which the command is called"
	if config.Machine.File != "" {
		text += ", and for " + config.Machine.File + " it is " + config.Machine.Data
	}
	return text
}

func environmentTopic() string {
	return `Every key of the configuration has a variable that goes over the file: ` + config.VariablePrefix + `, the section and
the key in capitals, such as TORYO_SERVER_ADDR for addr in server. Lists are separated by
commas. A variable that is set to nothing counts as not set. toryo help configuration names
them all.

` + config.TokenVariable + ` is the token with which a command asks the server that --server names. On the
machine of the server none is needed.

Where a credential is not configured, and what it is for is, these count too:
` + strings.Join(config.WellKnownVariables(), ", ") + `.

HTTPS_PROXY, HTTP_PROXY and NO_PROXY are used for connections to forges and models.`
}

func labelsTopic() string {
	names, defaults := task.DefaultLabelNames(), config.Default()
	var text strings.Builder
	text.WriteString("Toryo shows how a task stands by one label on its item. The key in the section of the forge\nsets its text:\n\n")
	for _, state := range task.States {
		fmt.Fprintf(&text, "  %-8s  %-26q %s\n", state, names[state.Label()], state.Label())
	}
	fmt.Fprintf(&text, `
These labels are read:

  %-34s has a pull request reviewed (review.label)
  %-34s the plan has to be approved first, where planning.approval is label
  %-34s more urgent, the first one most (priority.first)
  %-34s less urgent (priority.last)
  a name in roles                    says as what the agent works

A task begins when the bot is assigned to the item, not by a label.
`, defaults.Review.Label, defaults.Planning.ApprovalLabel, strings.Join(defaults.Priority.First, ", "), strings.Join(defaults.Priority.Last, ", "))
	if roles := defaults.RoleNames(); len(roles) > 0 {
		fmt.Fprintf(&text, "\nRoles by default: %s.\n", strings.Join(slices.Sorted(slices.Values(roles)), ", "))
	}
	return text.String()
}

const signalsTopic = `
A running task is steered on the forge, on its page, or by commands:

  stop     unassign the bot, close the item, or toryo tasks stop TASK
           The run has ten seconds to save its work. A comment says how to get it.
  pause    toryo pause TASK, or toryo pause --all; also the file pause_signal in the
           folder contexts of a server (everything) or of an agent (its own tasks)
           The run is saved and goes on where it was, on any agent.
  resume   toryo resume TASK, or toryo resume --all
  retry    toryo tasks retry TASK, or unassign the bot and assign it again
           For a task that has ended.
  approve  toryo tasks approve TASK PLAN, a thumbs-up on the comment with the plan, or a
           comment that approves it
  tell     a comment on the item; it is taken up at the next step of the run, from people who
           may write to the repository (comment_detection.accept_from)

The order is stop, pause, comments: who stops a task wins.`

const taskNamesTopic = `
Every command that takes a TASK takes any of these:

  gitea:team/app#3       the item with its forge: github, gitlab, gitea or board
  team/app#3             without the forge
  #3                     the number alone, if one repository has such a task
  team/app!4, !4         a pull or merge request; on GitLab it has a number of its own
  0199c2a4               the beginning of the id, at least 4 characters
  https://…/tasks/0199…  the page of the task
  https://…/issues/3     the item on its forge; also /pull/3, /pulls/3, /-/merge_requests/3

Where an item has several tasks, as a pull request that is worked on and reviewed, the one
that was assigned last is meant. A name that can mean several items is an error that lists
them.

In a shell put quotes around names with # or !: '#3', 'team/app!4'. Without quotes, #3 is a
comment, and bash puts lines of its history where a ! stands.`
