package gitlab

import "testing"

// Notes of other kinds quote what people wrote: a title or a list may say that somebody
// was assigned.
func TestAssignmentsByNotes(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]bool{
		"assigned to @toryo":                                              true,
		"assigned to @toryo and unassigned @hanako":                       true,
		"assigned to @hanako, @taro, and @toryo":                          true,
		"reassigned to @toryo":                                            true,
		"unassigned @toryo":                                               false,
		"assigned to @hanako and unassigned @toryo":                       false,
		"changed title from **x** to **assigned to @toryo**":              false,
		"marked the checklist item **assigned to @toryo** as completed":   false,
		"marked the checklist item **a\nassigned to @toryo** as complete": false,
	} {
		if got := assigns(body, "toryo"); got != want {
			t.Errorf("assigns(%q) is %v", body, got)
		}
	}
}
