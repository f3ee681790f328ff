package task

// Label is one of the labels by which a forge shows the state of a task.
type Label string

// The state labels, by the name of the configuration key that sets their text.
const (
	BotLabel        Label = "bot_label"
	ProcessingLabel Label = "processing_label"
	PausedLabel     Label = "paused_label"
	StoppedLabel    Label = "stopped_label"
	DoneLabel       Label = "done_label"
	FailedLabel     Label = "failed_label"
)

var stateLabels = map[State]Label{
	Queued:  BotLabel,
	Running: ProcessingLabel,
	Paused:  PausedLabel,
	Stopped: StoppedLabel,
	Done:    DoneLabel,
	Failed:  FailedLabel,
}

// Label is the label that shows the state.
func (s State) Label() Label { return stateLabels[s] }

// LabelNames is the text of each state label on one forge.
type LabelNames map[Label]string

// DefaultLabelNames returns the label texts of the specifications.
func DefaultLabelNames() LabelNames {
	return LabelNames{
		BotLabel:        "coding agent",
		ProcessingLabel: "coding agent processing",
		PausedLabel:     "coding agent paused",
		StoppedLabel:    "coding agent stopped",
		DoneLabel:       "coding agent done",
		FailedLabel:     "coding agent failed",
	}
}

// Change returns which labels to add and which to remove so that, of the state
// labels, only that of the given state remains on an item that now has the
// labels in current. Labels that are not state labels are never touched.
func (n LabelNames) Change(current []string, state State) (add, remove []string) {
	wanted := n[state.Label()]
	present := false
	for _, label := range current {
		switch {
		case label == wanted:
			present = true
		case n.isStateLabel(label):
			remove = append(remove, label)
		}
	}
	if !present {
		add = []string{wanted}
	}
	return add, remove
}

func (n LabelNames) isStateLabel(text string) bool {
	for _, name := range n {
		if name == text {
			return true
		}
	}
	return false
}
