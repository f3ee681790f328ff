package relational

import "strings"

// conditions gathers what a WHERE clause asks for.
type conditions struct {
	parts []string
	args  []any
}

func (c *conditions) add(part string, args ...any) {
	c.parts = append(c.parts, part)
	c.args = append(c.args, args...)
}

// addText asks for a column to be the given text, unless that is empty.
func (c *conditions) addText(column, text string) {
	if text != "" {
		c.add(column+` = ?`, text)
	}
}

func (c *conditions) text() string {
	if len(c.parts) == 0 {
		return ""
	}
	return ` WHERE ` + strings.Join(c.parts, ` AND `)
}
