package turn

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/maphash"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/phase/tool"
)

// window is how many calls back a repetition counts, so that a model that goes in
// a circle of several steps is seen too.
const window = 24

// repeats finds out when a model does the same over and over: the same tool, the
// same arguments, the same result. A change to a file starts the count anew,
// because the same test may well be run again after it.
type repeats struct {
	limits Limits
	seed   maphash.Seed
	recent []uint64
}

func newRepeats(limits Limits) *repeats { return &repeats{limits: limits, seed: maphash.MakeSeed()} }

type verdict struct {
	warning string
	stop    bool
}

func (r *repeats) see(done []tool.Done) verdict {
	var v verdict
	for _, d := range done {
		sign := r.sign(d)
		count := 1
		for _, other := range r.recent {
			if other == sign {
				count++
			}
		}
		if changes[d.Call.Name] && !d.Result.Error && count == 1 {
			r.recent = r.recent[:0]
		}
		r.recent = append(r.recent, sign)
		r.recent = r.recent[max(0, len(r.recent)-window):]
		switch {
		case count >= r.limits.Repeats:
			v.stop = true
		case count >= r.limits.Warn:
			v.warning = fmt.Sprintf("You have called %s with the same arguments and the same result %d times. It will not change. Do something else, ask, or finish.", d.Call.Name, count)
		}
	}
	return v
}

// changes are the tools whose success means that things are different now.
var changes = map[string]bool{"edit": true, "patch": true}

func (r *repeats) sign(d tool.Done) uint64 {
	var h maphash.Hash
	h.SetSeed(r.seed)
	for _, text := range []string{d.Call.Name, canonical(d.Call), d.Result.Text} {
		_, _ = h.WriteString(text) // never fails
		_ = h.WriteByte(0)
	}
	return h.Sum64()
}

// canonical is the arguments without differences in white space or order.
func canonical(call llm.Call) string {
	var value any
	if json.Unmarshal([]byte(call.Arguments), &value) != nil {
		return string(bytes.TrimSpace([]byte(call.Arguments)))
	}
	data, err := json.Marshal(value)
	if err != nil {
		return call.Arguments
	}
	return string(data)
}
