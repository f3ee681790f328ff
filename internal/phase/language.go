package phase

import (
	"github.com/toryo-dev/toryo/internal/messages"
	"github.com/toryo-dev/toryo/internal/task"
)

// languageOf is the language of what people read: the configured one, or that of
// the item.
func languageOf(work Work, configured string) task.Language {
	var texts []string
	for _, comment := range work.Comments {
		texts = append(texts, comment.Body)
	}
	return task.Language(configured).OfItem(work.Title, work.Body, texts...)
}

// text is a text in the language of the run.
func (r *run) text(key string, args ...any) string { return messages.Text(r.language, key, args...) }
