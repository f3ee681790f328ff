package llm

import "net/url"

// Reasoning says how a model is asked to reason before it answers, in the words of the
// API that it is reached by. The zero value asks for nothing: the model does as it does
// by itself.
type Reasoning struct {
	Effort string // a word for how much
	Type   string // a word that switches it on or off
	// Budget is how many tokens of the answer it may take at most, [NoBudget] if none.
	Budget    int64
	MinBudget int64 // the least that the server accepts
	// Returned is the field of a message in which the server insists on getting back
	// what was thought, "" if it does not insist.
	Returned string
}

// NoBudget is the budget that switches reasoning off.
const NoBudget = -1

// BudgetFor is the budget in a request whose answer has at most so many tokens, what is
// thought included. It leaves a fifth of them for what is said. It is 0 if there is no
// room to think at all.
func (r Reasoning) BudgetFor(answer int64) int64 {
	budget := min(r.Budget, answer*4/5)
	if budget < max(r.MinBudget, 1) {
		return 0
	}
	return budget
}

// Maker names the model, and the server if it is not the vendor's own. What a model
// thought goes back to its maker and to nobody else: other models and servers refuse it
// or, worse, take it for their own.
func (e Endpoint) Maker(provider string) string {
	maker := provider + " " + e.Model
	if at, err := url.Parse(e.BaseURL); err == nil && at.Host != "" {
		maker += " at " + at.Host
	}
	return maker
}
