package task

// Phase is a stage of a run.
type Phase string

// The phases, in the order in which a run goes through them. Execution and
// reflection take turns.
const (
	PrePlanning      Phase = "pre_planning"
	Planning         Phase = "planning"
	EnvironmentSetup Phase = "environment_setup"
	Execution        Phase = "execution"
	Reflection       Phase = "reflection"
	Verification     Phase = "verification"
	Complete         Phase = "complete"
)

// Phases lists the phases in order.
var Phases = []Phase{PrePlanning, Planning, EnvironmentSetup, Execution, Reflection, Verification, Complete}

var phaseNames = map[Phase]string{
	PrePlanning:      "Pre Planning",
	Planning:         "Planning",
	EnvironmentSetup: "Environment Setup",
	Execution:        "Execution",
	Reflection:       "Reflection",
	Verification:     "Verification",
	Complete:         "Complete",
}

// DisplayName is the phase as people see it, for example "Environment Setup".
func (p Phase) DisplayName() string { return phaseNames[p] }

// Valid reports whether the phase is one that exists.
func (p Phase) Valid() bool { return phaseNames[p] != "" }

// Now is the phase that a run is in when this one has begun (active) or is over. A
// reflection is within execution, which goes on afterwards.
func (p Phase) Now(active bool) Phase {
	if p == Reflection && !active {
		return Execution
	}
	return p
}

// PhaseActive is the status of a phase that has begun, as runs write it.
const PhaseActive = "active"
