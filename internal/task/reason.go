package task

// Reason is a stable code for why something happened to a task. It is chosen
// where the decision is made, stored with the task, counted in the metrics and
// shown to people in words.
type Reason string

// The reasons for a state.
const (
	ReasonAssigned          Reason = "assigned"
	ReasonReviewDue         Reason = "review_due"
	ReasonChangesRequested  Reason = "changes_requested"
	ReasonRetried           Reason = "retried"
	ReasonClaimed           Reason = "claimed"
	ReasonAgentStopping     Reason = "agent_stopping"
	ReasonLeaseExpired      Reason = "lease_expired"
	ReasonAgentGone         Reason = "agent_gone"
	ReasonAgentRestarted    Reason = "agent_restarted"
	ReasonNotPrepared       Reason = "not_prepared"
	ReasonNoBase            Reason = "nothing_to_start_from"
	ReasonAttemptsExhausted Reason = "attempts_exhausted"
	ReasonPauseRequested    Reason = "pause_requested"
	ReasonAllPaused         Reason = "all_paused"
	ReasonAgentPaused       Reason = "agent_paused"
	ReasonBudgetExhausted   Reason = "budget_exhausted"
	ReasonAwaitingAnswer    Reason = "awaiting_answer"
	ReasonResumed           Reason = "resumed"
	ReasonUnassigned        Reason = "unassigned"
	ReasonItemClosed        Reason = "item_closed"
	ReasonReviewNotNeeded   Reason = "review_not_needed"
	ReasonStopRequested     Reason = "stop_requested"
	ReasonPausedTooLong     Reason = "paused_too_long"
	ReasonCompleted         Reason = "completed"
	ReasonRunFailed         Reason = "run_failed"
)

// The reasons for which a queued task is next, or is not.
const (
	ReasonNext             Reason = "next"
	ReasonNotReady         Reason = "not_ready"
	ReasonBlocked          Reason = "blocked"
	ReasonItemBusy         Reason = "item_busy"
	ReasonRepositoryFull   Reason = "repository_at_limit"
	ReasonAgentsFull       Reason = "agents_at_limit"
	ReasonWaitsForReviewer Reason = "waits_for_another_agent"
	ReasonWaitsForItsAgent Reason = "waits_for_its_agent"
	ReasonNoAgent          Reason = "no_agent_left"
)

// The reasons for which nobody takes a task that could be handed out.
const (
	ReasonNoAgents     Reason = "no_agents"
	ReasonAgentsSilent Reason = "agents_silent"
	ReasonNoSandbox    Reason = "no_sandbox"
	ReasonNoModel      Reason = "no_model"
)

// The reasons for which a phase ends before its work is done.
const (
	ReasonModelLoops      Reason = "model_loops"
	ReasonEmptyAnswers    Reason = "empty_answers"
	ReasonTurnsExhausted  Reason = "turns_exhausted"
	ReasonModelRefused    Reason = "model_refused"
	ReasonContextExceeded Reason = "context_exceeded"
	ReasonInvalidPlan     Reason = "invalid_plan"
)

// The reasons for which a run fails that went to its end.
const (
	ReasonNothingChanged Reason = "nothing_changed"
	ReasonNotVerified    Reason = "not_verified"
	ReasonMergeConflict  Reason = "merge_conflict"
	ReasonUnsafeChange   Reason = "unsafe_change"
)

// The reasons for which a write is refused.
const (
	ReasonStaleGeneration Reason = "stale_generation"
	ReasonRejectedByForge Reason = "rejected_by_forge"
)

// The reasons for which a run is not told of a comment.
const (
	ReasonNotParticipant Reason = "not_a_participant"
	ReasonNoWriteAccess  Reason = "no_write_access"
)

var reasonTexts = map[Reason]string{
	ReasonAssigned:          "the bot was assigned",
	ReasonReviewDue:         "the pull request has waited for a review long enough",
	ReasonChangesRequested:  "a reviewer asked for changes",
	ReasonRetried:           "a person retried it",
	ReasonClaimed:           "an agent took it",
	ReasonAgentStopping:     "the agent was shut down and handed it back",
	ReasonLeaseExpired:      "the agent did not renew its lease in time",
	ReasonAgentGone:         "the agent disconnected before it received the task",
	ReasonAgentRestarted:    "the agent was started again and takes it up",
	ReasonNotPrepared:       "data that it needs could not be read from the forge",
	ReasonNoBase:            "the repository has no commit or no branch to start from",
	ReasonAttemptsExhausted: "every attempt was used up",
	ReasonPauseRequested:    "a person paused it",
	ReasonAllPaused:         "everything was paused",
	ReasonAgentPaused:       "a file pause_signal on the agent's machine asks for a pause",
	ReasonBudgetExhausted:   "the budget is used up",
	ReasonAwaitingAnswer:    "a question to a person is open",
	ReasonResumed:           "it was resumed",
	ReasonUnassigned:        "the bot was unassigned",
	ReasonItemClosed:        "the item was closed",
	ReasonReviewNotNeeded:   "somebody else has reviewed it",
	ReasonStopRequested:     "a person stopped it",
	ReasonPausedTooLong:     "it was paused for too long",
	ReasonCompleted:         "the work was verified and submitted",
	ReasonRunFailed:         "the run failed",
	ReasonNext:              "the next agent that asks gets it",
	ReasonNotReady:          "it is scheduled for later",
	ReasonBlocked:           "an issue that it needs is still open",
	ReasonItemBusy:          "another task on the same item or branch is running",
	ReasonRepositoryFull:    "as many tasks of the repository are running as may",
	ReasonAgentsFull:        "every agent that asks holds as many tasks as it may",
	ReasonWaitsForReviewer:  "the agent that wrote it is not to review it while another may come",
	ReasonWaitsForItsAgent:  "the agent that was started again may take it up first",
	ReasonNoAgent:           "every agent that asks has a task that comes before it",
	ReasonNoAgents:          "there is no agent",
	ReasonAgentsSilent:      "no agent has contacted the server recently",
	ReasonNoSandbox:         "the agent takes no tasks: no sandbox works on its machine",
	ReasonNoModel:           "the agent takes no tasks: no model is configured",
	ReasonModelLoops:        "the model repeated the same step without getting further",
	ReasonEmptyAnswers:      "the model answered nothing, several times",
	ReasonTurnsExhausted:    "every turn that the phase allows was used up",
	ReasonModelRefused:      "the model refused to answer",
	ReasonContextExceeded:   "the conversation no longer fits into the model's context",
	ReasonInvalidPlan:       "the model made no plan that can be used",
	ReasonNothingChanged:    "the run changed nothing",
	ReasonNotVerified:       "the work did not pass verification",
	ReasonMergeConflict:     "the work conflicts with newer changes of the base branch",
	ReasonUnsafeChange:      "the change has something in it that is not published, such as a secret",
	ReasonStaleGeneration:   "it belongs to a run that is over",
	ReasonRejectedByForge:   "the forge will not take it",
	ReasonNotParticipant:    "its author takes no part in the item",
	ReasonNoWriteAccess:     "its author may not write to the repository",
}

// Text is the reason in words.
func (r Reason) Text() string { return reasonTexts[r] }

// In is the reason in words of a language. A reason that is not known is nothing.
func (r Reason) In(language Language) string {
	if language == Japanese {
		return reasonsInJapanese[r]
	}
	return reasonTexts[r]
}
