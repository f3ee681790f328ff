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
	ReasonBaseConflict      Reason = "base_conflict"
	ReasonChecksFailed      Reason = "checks_failed"
	ReasonRetried           Reason = "retried"
	ReasonClaimed           Reason = "claimed"
	ReasonAgentStopping     Reason = "agent_stopping"
	ReasonLeaseExpired      Reason = "lease_expired"
	ReasonAgentGone         Reason = "agent_gone"
	ReasonAgentRestarted    Reason = "agent_restarted"
	ReasonRestored          Reason = "restored"
	ReasonNotPrepared       Reason = "not_prepared"
	ReasonNoBase            Reason = "nothing_to_start_from"
	ReasonNoCommit          Reason = "commit_missing"
	ReasonAttemptsExhausted Reason = "attempts_exhausted"
	ReasonPauseRequested    Reason = "pause_requested"
	ReasonAllPaused         Reason = "all_paused"
	ReasonAgentPaused       Reason = "agent_paused"
	ReasonBudgetExhausted   Reason = "budget_exhausted"
	ReasonAwaitingAnswer    Reason = "awaiting_answer"
	ReasonAwaitingApproval  Reason = "awaiting_approval"
	ReasonPlanApproved      Reason = "plan_approved"
	ReasonPlanDiscussed     Reason = "plan_discussed"
	ReasonResumed           Reason = "resumed"
	ReasonUnassigned        Reason = "unassigned"
	ReasonItemClosed        Reason = "item_closed"
	ReasonReviewNotNeeded   Reason = "review_not_needed"
	ReasonUnlabeled         Reason = "unlabeled"
	ReasonDraft             Reason = "draft"
	ReasonChecksPassed      Reason = "checks_passed"
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

// The reasons for which an agent hands its task back and takes no others: those above that are
// about its machine, and what the provider of its model says.
const (
	ReasonKeyRejected     Reason = "key_rejected"
	ReasonModelUnknown    Reason = "model_unknown"
	ReasonCreditUsedUp    Reason = "credit_used_up"
	ReasonDiskNotWritable Reason = "disk_not_writable"
)

// The reasons for which an agent hands one task back and takes others. Unlike the ones above they
// use up an attempt.
const (
	ReasonSandboxNotStarted Reason = "sandbox_not_started"
	ReasonRoleModel         Reason = "model_of_role_fails"
	ReasonTooLittleSpace    Reason = "too_little_disk_space"
)

// UnableReasons are all for which an agent takes no tasks.
var UnableReasons = []Reason{ReasonNoSandbox, ReasonNoModel, ReasonKeyRejected, ReasonModelUnknown, ReasonCreditUsedUp, ReasonDiskNotWritable, ReasonAgentPaused}

// The reasons for which a task is not begun: the account of the bot lacks a right.
const (
	ReasonNoPushRight    Reason = "no_right_to_push"
	ReasonNoCommentRight Reason = "no_right_to_comment"
	ReasonNoLabelRight   Reason = "no_right_to_label"
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
	ReasonBranchMoved    Reason = "branch_moved"
	ReasonWorkLost       Reason = "work_lost"
	ReasonUnsafeChange   Reason = "unsafe_change"
)

// The reasons for which a write is refused.
const (
	ReasonStaleGeneration Reason = "stale_generation"
	ReasonRejectedByForge Reason = "rejected_by_forge"
	ReasonForgeConflict   Reason = "forge_conflict"
	ReasonExpired         Reason = "expired"
	ReasonNotWritten      Reason = "not_written" // by us: the forge was not asked, or is not to blame
)

// The reasons for which a run is not told of a comment.
const (
	ReasonNotParticipant Reason = "not_a_participant"
	ReasonNoWriteAccess  Reason = "no_write_access"
)

// AwaitsPeople reports whether a task that is paused for the reason goes on when people say
// something on its item: the answer to a question, or what they think of a plan.
func (r Reason) AwaitsPeople() bool { return r == ReasonAwaitingAnswer || r == ReasonAwaitingApproval }

// LackOfRights are the reasons for which a task waits until somebody gives the bot a right.
var LackOfRights = []Reason{ReasonNoPushRight, ReasonNoCommentRight, ReasonNoLabelRight}

// UsesAttempt reports whether a task that was handed back for the reason is tried again later, and
// as often as max_attempts says.
func (r Reason) UsesAttempt() bool {
	return r == ReasonSandboxNotStarted || r == ReasonRoleModel || r == ReasonTooLittleSpace
}

// FixUp reports whether a task that was assigned for the reason continues the work of a pull
// request without anybody having assigned the bot to it.
func (r Reason) FixUp() bool {
	return r == ReasonChangesRequested || r == ReasonBaseConflict || r == ReasonChecksFailed
}
