// Package manual writes the manual pages of a program, from its commands. It writes roff
// itself: what the pages need of it are a few macros, and the library for that would bring a
// Markdown converter into the program.
package manual

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/toryo-dev/toryo/internal/lazyregexp"
	"github.com/toryo-dev/toryo/internal/task"
)

// Section is the section of the manual that programs are in.
const Section = "1"

// Write writes one page for each command that people are shown, into a folder that it makes,
// and returns how many there are. A page is named like toryo-tasks-show.1.
func Write(root *cobra.Command, folder, version string) (pages int, err error) {
	if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // manual pages are for everybody
		return 0, task.Wrap(task.Usage, err, "the folder for the manual pages cannot be made")
	}
	for _, c := range commands(root) {
		file := filepath.Join(folder, pageName(c)+"."+Section)
		if err := os.WriteFile(file, []byte(Page(c, version)), 0o644); err != nil { //nolint:gosec // as above
			return pages, task.Wrap(task.Usage, err, "a manual page cannot be written")
		}
		pages++
	}
	return pages, nil
}

// commands are a command and all below it, with the topics, that people are shown.
func commands(c *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{c}
	for _, below := range c.Commands() {
		if !below.Hidden && below.Name() != "help" {
			all = append(all, commands(below)...)
		}
	}
	return all
}

// pageName is the name of a page: the words of the command, with dashes.
func pageName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// Page is the manual page of a command, as roff.
func Page(c *cobra.Command, version string) string {
	c.InitDefaultHelpFlag()
	p := &page{}
	fmt.Fprintf(&p.text, ".TH %q %q \"\" %q %q\n", strings.ToUpper(pageName(c)), Section, "toryo "+version, "Toryo")
	p.section("NAME")
	p.line(pageName(c) + ` \- ` + escape(c.Short))
	if c.Runnable() || c.HasSubCommands() {
		p.section("SYNOPSIS")
		p.line(`\fB` + escape(c.UseLine()) + `\fP`)
	}
	p.section("DESCRIPTION")
	description := c.Long
	if description == "" {
		description = c.Short + "."
	}
	p.prose(description)
	p.commands(c)
	p.flags("OPTIONS", c.NonInheritedFlags())
	p.flags("OPTIONS FROM THE COMMANDS ABOVE", c.InheritedFlags())
	if c.Example != "" {
		p.section("EXAMPLES")
		p.literal(c.Example)
	}
	p.seeAlso(c)
	return p.text.String()
}

type page struct{ text strings.Builder }

func (p *page) line(text string)    { p.text.WriteString(text + "\n") }
func (p *page) section(name string) { p.line(".SH " + name) }

// prose writes paragraphs. Lines that are indented, such as tables, stay as they are.
func (p *page) prose(text string) {
	for paragraph := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		p.line(".PP")
		if strings.HasPrefix(paragraph, " ") || strings.Contains(paragraph, "\n ") {
			p.literal(paragraph)
			continue
		}
		p.line(escape(paragraph))
	}
}

// literal writes lines that are not filled.
func (p *page) literal(text string) {
	p.line(".nf")
	p.line(escape(strings.Trim(text, "\n")))
	p.line(".fi")
}

func (p *page) commands(c *cobra.Command) {
	var below []*cobra.Command
	for _, one := range c.Commands() {
		if !one.Hidden && one.Name() != "help" {
			below = append(below, one)
		}
	}
	if len(below) == 0 {
		return
	}
	p.section("COMMANDS")
	for _, one := range below {
		p.line(".TP")
		p.line(`\fB` + escape(one.CommandPath()) + `\fP`)
		p.line(escape(one.Short))
	}
}

func (p *page) flags(title string, set *pflag.FlagSet) {
	if !set.HasAvailableFlags() {
		return
	}
	p.section(title)
	set.VisitAll(func(flag *pflag.Flag) {
		if flag.Hidden {
			return
		}
		value, usage := pflag.UnquoteUsage(flag)
		name := `\fB--` + escape(flag.Name) + `\fP`
		if flag.Shorthand != "" {
			name = `\fB-` + escape(flag.Shorthand) + `\fP, ` + name
		}
		if value != "" {
			name += ` \fI` + escape(value) + `\fP`
		}
		p.line(".TP")
		p.line(name)
		p.line(escape(usage))
	})
}

func (p *page) seeAlso(c *cobra.Command) {
	var pages []string
	if c.HasParent() {
		pages = append(pages, pageName(c.Parent()))
	}
	for _, one := range c.Commands() {
		if !one.Hidden && one.Name() != "help" {
			pages = append(pages, pageName(one))
		}
	}
	if len(pages) == 0 {
		return
	}
	p.section("SEE ALSO")
	for i, name := range pages {
		mark := ","
		if i == len(pages)-1 {
			mark = ""
		}
		p.line(fmt.Sprintf(`.BR %s (%s)%s`, escape(name), Section, mark))
	}
}

// command begins a line that roff takes for one of its own.
var command = lazyregexp.New(`(?m)^([.'])`)

// escape makes text stand for itself.
func escape(text string) string {
	text = strings.ReplaceAll(text, `\`, `\e`)
	text = strings.ReplaceAll(text, "-", `\-`)
	return command.ReplaceAllString(text, `\&$1`)
}
