package harbor

import (
	"slices"
	"strings"
	"unicode"

	"github.com/toryo-dev/toryo/internal/eval/taskset"
	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/task"
)

// basesOf are the images that a Dockerfile begins from, if it is built without network: the network
// of a build is that of its commands only. It refuses a Dockerfile that may have the engine itself
// fetch something, or of which it is not sure what the builder makes of it.
func basesOf(c taskset.Container) ([]sandbox.Base, error) {
	text, err := taskset.DockerfileOf(c.Folder)
	if err != nil {
		return nil, err
	}
	if mayFetch(text) {
		return nil, task.Errorf(task.Unsupported, "a line of its Dockerfile may be an ADD or ONBUILD, by which the engine can fetch from the network; that needs --allow-network").WithHint("COPY needs none")
	}
	bases, unclear := basesIn(text)
	if unclear != "" {
		return nil, task.Errorf(task.Unsupported, "it cannot be said which image the line %q of its Dockerfile names, so that it may have ONBUILD instructions, by which the engine can fetch from the network; that needs --allow-network", unclear).
			WithHint("write FROM, the name of the image and AS in one line of its own, without variables; if it names a stage, there may be no < in the file, which can begin a text of several lines")
	}
	return bases, nil
}

// firstWords are the first words of the lines of a Dockerfile, in lower case, and the lines. The
// builder puts continued lines together in ways of its own, but an instruction always begins where a
// line of the file does.
func firstWords(dockerfile string, visit func(word, line string) (goOn bool)) {
	isSpace := func(r rune) bool { return unicode.IsSpace(r) || r == '\ufeff' }
	for line := range strings.FieldsFuncSeq(dockerfile, func(r rune) bool { return r == '\n' || r == '\r' }) {
		for word := range strings.FieldsFuncSeq(strings.ToLower(line), isSpace) {
			if !visit(word, line) {
				return
			}
			break
		}
	}
}

// escapes are what can continue a line of a Dockerfile, whichever of them a file says it is.
const escapes = "\\`"

// mayBe reports whether a word is an instruction, or the beginning of one that goes on in the next
// line.
func mayBe(word, instruction string) bool {
	start := strings.TrimRight(word, escapes)
	return start == instruction || start != word && start != "" && strings.HasPrefix(instruction, start)
}

// mayFetch reports whether a line of a Dockerfile may be an ADD or an ONBUILD. Lines of other
// instructions that begin with such a word are taken for one too.
func mayFetch(dockerfile string) (may bool) {
	firstWords(dockerfile, func(word, _ string) bool {
		may = mayBe(word, "add") || mayBe(word, "onbuild")
		return !may
	})
	return may
}

// basesIn are the images that a Dockerfile names with FROM, but for those that it makes itself. A
// line is unclear that may be a FROM and also something else, or that names no image literally.
func basesIn(dockerfile string) (bases []sandbox.Base, unclear string) {
	var stages []string
	continued := false
	// The builder ends lines at \n alone and takes the text of a here-document for no lines: then what looks
	// like the name of a stage may be none, and mean an image.
	doubtful := strings.Contains(strings.ReplaceAll(dockerfile, "\r\n", "\n"), "\r") || strings.Contains(dockerfile, "<")
	firstWords(dockerfile, func(word, line string) bool {
		after := continued
		whole := strings.TrimRightFunc(line, unicode.IsSpace)
		continued = strings.TrimRight(whole, escapes) != whole || after && strings.HasPrefix(word, "#") // comments may be within a line
		if !mayBe(word, "from") {
			return true
		}
		base, stage, known := baseIn(line)
		isStage := slices.Contains(stages, strings.ToLower(base.Name))
		if after || !known || isStage && doubtful {
			unclear = strings.TrimSpace(line)
			return false
		}
		if base.Name != "scratch" && !isStage {
			bases = append(bases, base)
		}
		if stage != "" {
			stages = append(stages, strings.ToLower(stage))
		}
		return true
	})
	return bases, unclear
}

// baseIn is the image that a line with FROM names, and the name that it gives the stage, if any. It is
// known if the builder can make nothing else of it.
func baseIn(line string) (base sandbox.Base, stage string, known bool) {
	words := strings.Fields(line)[1:]
	if len(words) > 0 && strings.HasPrefix(words[0], "--platform=") {
		base.Platform, words = strings.TrimPrefix(words[0], "--platform="), words[1:]
	}
	switch {
	case strings.ContainsAny(line, escapes+"$"), len(words) == 0, strings.HasPrefix(words[0], "-"):
		return base, "", false
	case len(words) == 3 && strings.EqualFold(words[1], "as"):
		stage = words[2]
	case len(words) != 1:
		return base, "", false
	}
	base.Name = words[0]
	return base, stage, true
}
