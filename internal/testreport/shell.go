package testreport

import (
	"strings"

	"github.com/toryo-dev/toryo/internal/lazyregexp"
)

// word is one word of a command line, without its quotes, and where it stands.
type word struct {
	text       string
	start, end int
}

// simpleCommand is one command of a command line, and the operator before it.
type simpleCommand struct {
	operator string
	words    []word
}

// lexer cuts a command line into simple commands. What it does not know is not
// guessed: redirections, groups, substitutions and functions make it give up.
type lexer struct {
	line     string
	at       int
	commands []simpleCommand
	current  simpleCommand
}

func parseLine(line string) ([]simpleCommand, bool) {
	l := lexer{line: line}
	for l.at < len(l.line) {
		switch c := l.line[l.at]; {
		case c == ' ' || c == '\t':
			l.at++
		case strings.IndexByte("&|;\n", c) >= 0:
			if !l.operator() {
				return nil, false
			}
		case strings.IndexByte("<>()`{}#!", c) >= 0:
			return nil, false
		default:
			if !l.word() {
				return nil, false
			}
		}
	}
	if len(l.current.words) > 0 {
		l.commands = append(l.commands, l.current)
	}
	return l.commands, len(l.commands) > 0
}

func (l *lexer) operator() bool {
	start := l.at
	for l.at < len(l.line) && l.line[l.at] == l.line[start] && l.at-start < 2 {
		l.at++
	}
	operator := l.line[start:l.at]
	switch operator {
	case "&&", "||", "|", ";", "\n", "\n\n":
	default: // in the background, or the end of a case
		return false
	}
	if len(l.current.words) > 0 {
		l.commands = append(l.commands, l.current)
	} else if operator[0] != '\n' {
		return false
	}
	l.current = simpleCommand{operator: strings.Trim(operator, "\n")}
	return true
}

func (l *lexer) word() bool {
	start := l.at
	var text strings.Builder
	for l.at < len(l.line) {
		c := l.line[l.at]
		switch {
		case strings.IndexByte(" \t\n&|;", c) >= 0:
			l.current.words = append(l.current.words, word{text.String(), start, l.at})
			return true
		case c == '\'' || c == '"':
			if !l.quoted(c, &text) {
				return false
			}
		case c == '\\' && l.at+1 < len(l.line):
			text.WriteByte(l.line[l.at+1])
			l.at += 2
		case strings.IndexByte("<>()`", c) >= 0:
			return false
		default:
			text.WriteByte(c)
			l.at++
		}
	}
	l.current.words = append(l.current.words, word{text.String(), start, l.at})
	return true
}

func (l *lexer) quoted(quote byte, text *strings.Builder) bool {
	for l.at++; l.at < len(l.line); l.at++ {
		switch c := l.line[l.at]; {
		case c == quote:
			l.at++
			return true
		case quote == '"' && c == '\\' && l.at+1 < len(l.line):
			l.at++
			text.WriteByte(l.line[l.at])
		case quote == '"' && (c == '`' || c == '$' && strings.HasPrefix(l.line[l.at:], "$(")):
			return false
		default:
			text.WriteByte(c)
		}
	}
	return false
}

var plainWord = lazyregexp.New(`^[A-Za-z0-9_./:=@%+,-]+$`)

// quote makes one word of a text for the shell.
func quote(text string) string {
	if plainWord.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

func quoteAll(texts []string) string {
	quoted := make([]string, len(texts))
	for i, text := range texts {
		quoted[i] = quote(text)
	}
	return strings.Join(quoted, " ")
}

// driverFile is a file of ours that a command line writes before it runs.
type driverFile struct{ name, content string }

// shellScript is a command line that makes the report folder and files of ours in it,
// and then runs a body. It is a subshell: what it exports and where it goes does not
// stay in the session.
func shellScript(dir string, files []driverFile, body string) string {
	var b strings.Builder
	b.WriteString("(\nmkdir -p " + quote(dir) + " || exit 125\n")
	for _, file := range files {
		b.WriteString("printf '%s' " + quote(file.content) + " >" + quote(dir+"/"+file.name) + " || exit 125\n")
	}
	b.WriteString(body + "\n)")
	return b.String()
}
