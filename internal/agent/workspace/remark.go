package workspace

import (
	"slices"

	"github.com/toryo-dev/toryo/internal/messages"
)

// remark notes something once.
func (w *Workspace) remark(key string, args ...any) {
	text := messages.Text(w.options.Language, key, args...)
	if !slices.Contains(w.remarks, text) && len(w.remarks) < maxRemarks {
		w.remarks = append(w.remarks, text)
	}
}

// maxRemarks is how much is said at most.
const maxRemarks = 20
