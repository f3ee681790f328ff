package testreport

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// What is read of a run at most.
const (
	maxBytes   = 64 << 20 // of one report file, and of all files together
	maxFiles   = 5000
	maxLine    = 1 << 20 // of a report that has one JSON value per line
	maxProject = 1 << 20 // of a file of the project, such as package.json
)

// run is what there is to read after a run.
type run struct {
	output []byte
	exit   int
	files  fs.FS
}

var errTooLong = errors.New("it is too long")

// readFile reads a regular file of at most so many bytes.
func readFile(files fs.FS, name string, most int64) ([]byte, error) {
	if files == nil {
		return nil, fs.ErrNotExist
	}
	file, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file")
	}
	data, err := io.ReadAll(io.LimitReader(file, most+1))
	if err == nil && int64(len(data)) > most {
		err = errTooLong
	}
	return data, err
}

// reports are the names of the report files in a folder and in the folders directly
// below it that end so, in order.
func reports(files fs.FS, ending string) ([]string, error) {
	if files == nil {
		return nil, nil
	}
	var names []string
	look := func(dir string) ([]string, error) {
		entries, err := fs.ReadDir(files, dir)
		if err != nil {
			return nil, err
		}
		var below []string
		for _, entry := range entries {
			switch name := path.Join(dir, entry.Name()); {
			case entry.IsDir():
				below = append(below, name)
			case strings.HasSuffix(name, ending):
				names = append(names, name)
			}
		}
		return below, nil
	}
	below, err := look(".")
	if errors.Is(err, fs.ErrNotExist) { // nothing was run
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if len(below) > maxFiles {
		return nil, fmt.Errorf("there are more than %d folders", maxFiles)
	}
	for _, dir := range below {
		if _, err := look(dir); err != nil {
			return nil, err
		}
	}
	if len(names) > maxFiles {
		return nil, fmt.Errorf("there are more than %d files", maxFiles)
	}
	slices.Sort(names)
	return names, nil
}

// eachReport reads the report files that end so, one after the other, up to a number
// of bytes together. It returns how many there were.
func (r run) eachReport(b *builder, ending string, read func(name string, data []byte)) int {
	names, err := reports(r.files, ending)
	if err != nil {
		b.doubt("the report cannot be read: %v", err)
		return 0
	}
	left := int64(maxBytes)
	for _, name := range names {
		data, err := readFile(r.files, name, left)
		if err != nil {
			b.doubt("the report %s cannot be read: %v", name, err)
			return len(names)
		}
		left -= int64(len(data))
		read(name, data)
	}
	return len(names)
}

// line is one line of what the drivers in the folder drivers write. Every process
// that takes part has a file of its own. It is finished if its last line is an end,
// which says how many cases came before it.
type line struct {
	Case    *string `json:"case"`
	File    string  `json:"file"`
	Status  Status  `json:"status"`
	Message string  `json:"message"`

	Control *string `json:"control"` // how the test that has to fail ended
	Start   *string `json:"start"`   // what the process runs
	// Expected is the file, groups and title of a test that is marked as failing, where
	// the runner reports it as passed.
	Expected []string `json:"expected"`
	End      *int     `json:"end"`
	Doubt    *string  `json:"doubt"` // why the driver itself says that it cannot count
}

const driverFiles = ".jsonl"

// readDriver reads what the drivers wrote: the cases and the controls.
func (r run) readDriver(b *builder) {
	if r.readDriverFiles(b) == 0 {
		b.doubt("the runner wrote no report")
	}
	b.needControl()
}

// readDriverFiles returns how many files there were.
func (r run) readDriverFiles(b *builder) int {
	return r.eachReport(b, driverFiles, func(name string, data []byte) { readDriverFile(b, name, data) })
}

// needControl says that a control must have run if a test passed.
func (b *builder) needControl() {
	if b.controls == 0 && slices.ContainsFunc(b.cases, func(c Case) bool { return c.Status == Passed }) {
		b.doubt("no control ran: a test that has to fail was not reported")
	}
}

func readDriverFile(b *builder, name string, data []byte) {
	what, cases, ended := name, 0, false
	for text := range bytes.Lines(data) {
		var l line
		switch {
		case ended:
			b.doubt("%s goes on after its end", what)
			return
		case len(text) > maxLine || json.Unmarshal(text, &l) != nil:
			b.doubt("%s has a line that is not a report", what)
			return
		case l.Start != nil:
			what = *l.Start
		case l.Doubt != nil:
			b.doubt("%s", *l.Doubt)
		case l.Control != nil:
			b.controls++
			if *l.Control != string(Failed) {
				b.doubt("a control, which has to fail, is reported as %q by %s: assertions or the runner were changed", *l.Control, what)
			}
		case l.Case != nil:
			cases++
			b.add(Case{Name: *l.Case, File: l.File, Status: l.Status, Message: l.Message})
		case l.Expected != nil && len(b.expected) < MaxCases:
			b.expected[jestName(l.Expected)] = true
		case l.End != nil:
			ended = true
			if *l.End != cases {
				b.doubt("%s has %d tests and says that it has %d", what, cases, *l.End)
			}
		}
	}
	if !ended {
		b.doubt("%s ended before its report did", what)
	}
}
