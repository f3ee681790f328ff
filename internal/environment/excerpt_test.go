package environment

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// filler is output that tells nothing, of so many lines.
func filler(what string, lines int) string {
	var b strings.Builder
	for line := range lines {
		fmt.Fprintf(&b, "%s part %05d\n", what, line)
	}
	return b.String()
}

// An excerpt has the line that tells the cause, and the end, and is not too long.
func TestExcerpt(t *testing.T) {
	t.Parallel()
	log := filler("compiled", 1900) + "gate.go:7: error: undefined: hinge\n" + filler("linked", 100) + "\x1b[31mFAIL\x1b[0m\n\n"
	const most = 2000
	got := Excerpt([]byte(log), most)
	for _, part := range []string{"compiled part 01899\ngate.go:7: error: undefined: hinge\nlinked part 00000", "linked part 00099\nFAIL", leftOut} {
		if !strings.Contains(got, part) {
			t.Errorf("there is no %q in\n%s", part, got)
		}
	}
	if len(got) > most {
		t.Errorf("it has %d bytes", len(got))
	}
	if got := Excerpt([]byte("short\n"), most); got != "short" {
		t.Errorf("of a short log it is %q", got)
	}
	if got := Excerpt(nil, most); got != "" {
		t.Errorf("of nothing it is %q", got)
	}
}

// Each runner's report of a failure is in the excerpt, however far from the end it stands, and
// whole.
func TestExcerptHasTheReportsOfTestRunners(t *testing.T) {
	t.Parallel()
	for name, report := range map[string]string{
		"pytest":     "===== FAILURES =====\n_____ test_door _____\n\n    def test_door():\n>       assert opened == 2\nE       assert 1 == 2\n\ntests/test_door.py:3: AssertionError\n===== 1 failed, 12 passed in 0.40s =====",
		"go":         "--- FAIL: TestDoor (0.00s)\n    door_test.go:12: got 1, want 2\n    door_test.go:14: the door is shut",
		"rspec":      "Failures:\n\n  1) Door opens\n     Failure/Error: expect(door).to be_open\n\n       expected `door.open?` to be truthy\n     # ./spec/door_spec.rb:4:in `block'",
		"mocha":      "  1 failing\n\n  1) Door\n       opens:\n\n      AssertionError: expected 1 to equal 2\n      at Context.<anonymous> (test/door.js:4:12)",
		"cargo":      "---- door::opens stdout ----\nthread 'door::opens' panicked at src/door.rs:9:5:\nassertion `left == right` failed",
		"phpunit":    "There was 1 failure:\n\n1) DoorTest::testOpens\nFailed asserting that 1 matches expected 2.\n\n/app/tests/DoorTest.php:11",
		"surefire":   "Failed tests:\n  DoorTest.opens:12 expected:<2> but was:<1>",
		"gradle":     "* What went wrong:\nExecution failed for task ':compileJava'.\n> Compilation failed; see the compiler output.",
		"scalatest":  "[info] - a door opens *** FAILED ***\n[info]   1 did not equal 2 (DoorSpec.scala:9)",
		"tasty":      "      tables:                                   FAIL (0.06s)\n        \n        --- tables.custom\n        +++ door --quiet tables.native\n        +  29 </table>\n        -  29 </table\n        +  58 </table>\n        -  58 </table\n        +  88 </table>\n        -  88 </table",
		"tap":        "# Starting Test: hinge - turns\n  tests/hinge.lua:85: Missing 1 expected call\n  stack traceback:\n  \t[C]: in function 'error'\n  \ttests/hinge.lua:85: in function 'run'\nnot ok 23 hinge - turns",
		"R":          "  Running 'test-all.R' [9s/15s]\n ERROR\nRunning the tests in 'tests/test-all.R' failed.\nLast 13 lines of output:\n  Component \"C\": Modes: character, list\n  [ OK: 797 | SKIPPED: 0 | WARNINGS: 0 | FAILED: 1 ]",
		"cmake":      "CMake Error at /usr/share/cmake/FindHinge.cmake:12 (message):\n  Unable to find the requested hinges.\n\n  Hinge version: 1.54.0\n\n  Hinge include path: /usr/include\n\n  The version is too old.  Requested was 1.55 (or\n  newer).\nCall Stack (most recent call first):\n  CMakeLists.txt:45 (include)",
		"linter":     "db/rename_door.rb:1:1: C: Style/FrozenStringLiteralComment: Missing magic comment.\nclass RenameDoor\n^",
		"ghc":        "door.hs:31:1: error:\n    Failed to load interface for 'Door.JSON1'\n    Locations searched:\n      Door/JSON1.hs\n      Door/JSON1.lhs\n      Door/JSON1.hsig\n      Door/JSON1.lhsig\n      src/Door/JSON1.hs\n      src/Door/JSON1.lhs\n      src/Door/JSON1.hsig",
		"long trace": "Traceback (most recent call last):\n" + strings.Repeat("  File \"door.py\", line 3, in open\n    return hinge.turn()\n", 20) + "  File \"hinge.py\", line 9, in turn\n    raise Rust()",
		"traceback":  "Traceback (most recent call last):\n  File \"door.py\", line 3, in <module>\n    import hinge\nModuleNotFoundError: No module named 'hinge'",
	} {
		log := filler("collected", 400) + report + "\n" + filler("cleaned", 400)
		got := Excerpt([]byte(log), 12<<10)
		for line := range strings.SplitSeq(report, "\n") {
			if !strings.Contains(got, line) {
				t.Errorf("%s: there is no %q in\n%s", name, line, got)
			}
		}
	}
}

// In the log of a CI system the command that failed counts, not what an earlier one printed.
func TestExcerptGoesByTheCommandThatFailed(t *testing.T) {
	t.Parallel()
	var noisy strings.Builder
	for n := range 60 {
		fmt.Fprintf(&noisy, "error: optional feature %c%c is not built\n", 'a'+n%26, 'a'+n/26)
	}
	log := "$ ./configure\n" + strings.Repeat("error: the door is shut\n", 9) + noisy.String() + filler("checked", 300) + "$ make check\n" + filler("ran", 300) +
		"error: the door is shut\n" + filler("swept", 200) + "The command \"make check\" exited with 2.\ntravis_fold:start:cache\n" + filler("stored", 300)
	got := Excerpt([]byte(log), 4<<10)
	for _, want := range []string{"$ make check", "error: the door is shut\nswept part 00000", "swept part 00199", "The command \"make check\" exited with 2."} {
		if !strings.Contains(got, want) {
			t.Errorf("there is no %q in\n%s", want, got)
		}
	}
	if strings.Contains(got, "travis_fold") {
		t.Errorf("it has a mark of the CI system:\n%s", got)
	}
}

// What is said outside of the command that failed does not take the room of its output, and the command
// itself, which the CI system repeats, is not taken for the end of its output.
func TestExcerptHasTheOutputOfTheCommandThatFailed(t *testing.T) {
	t.Parallel()
	var noisy strings.Builder
	for n := range 300 {
		fmt.Fprintf(&noisy, "feature %c%c could not be opened\n", 'a'+n%26, 'a'+n/26)
	}
	command := "bash -c \"\n" + filler("  open door", 30) + "\""
	log := noisy.String() + "$ " + command + "\n" + filler("bolt", 25) + "The command \"" + command + "\n\" exited with 1.\n" + noisy.String()
	got := Excerpt([]byte(log), 12<<10)
	if !strings.Contains(got, filler("bolt", 25)+"The command \"bash -c") {
		t.Errorf("there is not all of the output in\n%s", got)
	}
}

// Lines that tell that all went well are not taken for failures, whatever words they have.
func TestExcerptPassesOverWhatWentWell(t *testing.T) {
	t.Parallel()
	var well strings.Builder
	for n := range 100 {
		name := fmt.Sprintf("%c%c", 'a'+n%26, 'a'+n/26)
		fmt.Fprintf(&well, "  %s cannot start with a number:   OK (0.01s)\n✓ %s fails without a key\nok %d %s crashed before\n%s ran without errors\n%s.c:3:7: note: expected a door\n",
			name, name, n, name, name, name)
	}
	log := filler("opened", 200) + "the hinge was rejected by the wall\n" + well.String() + filler("closed", 200)
	if got := Excerpt([]byte(log), 12<<10); !strings.Contains(got, "the hinge was rejected") {
		t.Errorf("got\n%s", got)
	}
}

// Progress that is written over itself leaves its last state; an error that a program wrote
// over stays.
func TestExcerptOfLinesThatWereWrittenOver(t *testing.T) {
	t.Parallel()
	log := filler("fetched", 200) + "10% done\r20% done\r100% done\n" + "error: no hinge\r    \rat door.go:3\r\n"
	got := Excerpt([]byte(log), 4<<10)
	if strings.Contains(got, "20% done") || !strings.Contains(got, "100% done") || !strings.Contains(got, "error: no hinge") || !strings.Contains(got, "at door.go:3") {
		t.Errorf("got\n%s", got)
	}
}

// Whatever the log, an excerpt keeps to its lines and bytes.
func TestExcerptKeepsItsLimits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.SampledFrom([]string{"", "ok", "error: x", "--- FAIL: TestX", "$ make", "1) y", "at z.go:1", "The command \"x\" exited with 1.", "\r", strings.Repeat("w", 300), "FAILURES:"})
		log := strings.Join(rapid.SliceOfN(line, 0, 400).Draw(t, "log"), "\n")
		most := rapid.IntRange(10, 5000).Draw(t, "most")
		got := Excerpt([]byte(log), most)
		if len(got) > most || strings.Count(got, "\n") >= ExcerptLines {
			t.Fatalf("%d bytes of %d, %d lines:\n%s", len(got), most, strings.Count(got, "\n")+1, got)
		}
	})
}

// A log that is nothing but failures takes no longer than another: the time grows with its length,
// and not with the length times the failures.
func TestExcerptOfAsManyFailuresAsThereAreLines(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"--- FAIL: ", "=== FAILURES === ", "error: "} {
		var log strings.Builder
		for n := 0; log.Len() < longestTail/4; n++ {
			log.WriteString(line)
			for rest := n; rest > 0; rest /= 26 {
				log.WriteByte(byte('a' + rest%26))
			}
			log.WriteByte('\n')
		}
		if got := Excerpt([]byte(log.String()), 12<<10); len(got) > 12<<10 || !strings.Contains(got, line+"\n"+line+"b\n") {
			t.Errorf("%s: %d bytes: %.200s", line, len(got), got)
		}
	}
}

// What a long progress bar was written over with is looked at and shown.
func TestErrorBehindALongProgressBar(t *testing.T) {
	t.Parallel()
	log := []byte(strings.Repeat("10% [=>  ]\r", 400) + "npm error code EAI_AGAIN getaddrinfo registry.example\n")
	if got := Classify(log, 1); got.Kind != Network || !strings.HasPrefix(got.Line, "npm error code EAI_AGAIN") {
		t.Errorf("it is %+v", got)
	}
	if got := Excerpt(log, 4<<10); !strings.Contains(got, "EAI_AGAIN") {
		t.Errorf("the excerpt is %q", got)
	}
}

// The beginning of a log is shown, and its real end, whatever a line in it says of a command.
func TestExcerptHasBeginningAndEnd(t *testing.T) {
	t.Parallel()
	log := "diff -u a b\n" + filler("left", 50) + "The command \"x\" exited with 1.\n" + filler("right", 3000) + "one\ntwo\nthree\nfour\nfive\n"
	got := Excerpt([]byte(log), 8<<10)
	if !strings.HasPrefix(got, "diff -u a b\n") || !strings.HasSuffix(got, "one\ntwo\nthree\nfour\nfive") {
		t.Errorf("got\n%s", got)
	}
}
