// Package conversation keeps what a model is told over a run: the system prompt,
// the tools, pinned blocks and the transcript.
//
// What is sent is stable for the caches of the providers. The system prompt, the
// tools and the pinned blocks come first and do not change; whatever is new is
// appended, also the new text of a pinned block. Only a compaction, which is rare,
// writes the head anew.
//
// A compaction makes room when the conversation fills a share of the model's
// context: first old tool outputs are masked; when that is not enough, the older
// part of the transcript is summarised by a model. Pinned blocks (the plan, what
// is done, the project's rules, what people said, the next action) are outside
// the transcript and are there word for word afterwards. [Verify] proves that and
// the other promises mechanically. When a summary fails, or does not make the
// conversation smaller, masking alone is used.
//
// Every message goes to the journal before it counts, and stays there whole:
// compaction changes what the model is shown, and forgets nothing.
package conversation
