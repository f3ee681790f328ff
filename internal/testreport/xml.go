package testreport

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strconv"
	"strings"
)

// deepest is how deep elements of a report may be nested.
const deepest = 64

// element is an element of an XML report, with its text as far as it is kept.
type element struct {
	name       string
	attributes map[string]string
	text       strings.Builder
	// counted are the tests in a suite and in the suites below it; reported are the
	// results in a test.
	counted  int
	reported map[string]*element
}

func (e *element) attribute(name string) string { return e.attributes[name] }

// walkXML calls a function at the end of each element, with the elements around it,
// the outermost first and the element itself last. Package xml knows neither external
// nor declared entities.
func walkXML(data []byte, end func(path []*element)) error {
	decoder := xml.NewDecoder(bytes.NewReader(data))
	var path []*element
	seen := false
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			if !seen {
				return errors.New("it is empty")
			}
			return nil
		}
		if err != nil {
			return err
		}
		switch t := token.(type) {
		case xml.StartElement:
			if len(path) >= deepest {
				return errors.New("it is nested too deeply")
			}
			seen = true
			e := &element{name: t.Name.Local, attributes: map[string]string{}}
			for _, a := range t.Attr {
				e.attributes[a.Name.Local] = a.Value
			}
			path = append(path, e)
		case xml.EndElement:
			end(path)
			path = path[:len(path)-1]
		case xml.CharData:
			if len(path) > 0 {
				keep(&path[len(path)-1].text, string(t))
			}
		case xml.Directive:
			return errors.New("it has a document type")
		}
	}
}

// readJUnit reads the XML that many runners write, after that of JUnit's Ant task.
func readJUnit(b *builder, name string, data []byte, named func(path []*element) Case) {
	err := walkXML(data, func(path []*element) {
		e, parent := path[len(path)-1], &element{}
		if len(path) > 1 {
			parent = path[len(path)-2]
		}
		switch e.name {
		case "testcase":
			addJUnit(b, e, named(path))
			parent.counted++
		case "testsuite":
			if e.attribute("tests") != strconv.Itoa(e.counted) {
				b.doubt("%s: the suite %s names %d tests and counts %q", name, e.attribute("name"), e.counted, e.attribute("tests"))
			}
			parent.counted += e.counted
		case "failure", "error", "skipped", "warning":
			if parent.reported == nil {
				parent.reported = map[string]*element{}
			}
			parent.reported[e.name] = e
		}
	})
	if err != nil {
		b.doubt("the report %s cannot be read: %v", name, err)
	}
}

func addJUnit(b *builder, e *element, c Case) {
	c.Status = Passed
	for _, kind := range []string{"error", "failure", "warning", "skipped"} {
		found := e.reported[kind]
		if found == nil {
			continue
		}
		c.Status, c.Message = Failed, strings.TrimSpace(found.attribute("message")+"\n"+found.text.String())
		if kind == "skipped" {
			c.Status = Skipped
		}
		break
	}
	b.add(c)
}

// trx is what is read of one file of Visual Studio's test platform.
type trx struct {
	results  []*element
	messages map[*element]string
	classes  map[string]string // by the id of the test
	outcome  string
	total    string
}

// readTRX reads the XML of Visual Studio's test platform.
func readTRX(b *builder, name string, data []byte) {
	f := trx{messages: map[*element]string{}, classes: map[string]string{}}
	if err := walkXML(data, f.element); err != nil {
		b.doubt("the report %s cannot be read: %v", name, err)
	} else if f.outcome != "Completed" && f.outcome != "Failed" || f.total != strconv.Itoa(len(f.results)) {
		b.doubt("%s: the run ended as %q with %d of %q results", name, f.outcome, len(f.results), f.total)
	}
	for _, e := range f.results {
		test, class := e.attribute("testName"), f.classes[e.attribute("testId")]
		if !strings.HasPrefix(test, class) {
			test = class + "." + test
		}
		status := Failed
		switch e.attribute("outcome") {
		case "Passed":
			status = Passed
		case "NotExecuted", "Inconclusive", "NotRunnable", "Pending":
			status = Skipped
		}
		b.add(Case{Name: test, Status: status, Message: f.messages[e]})
	}
}

func (f *trx) element(path []*element) {
	switch e := path[len(path)-1]; e.name {
	case "UnitTestResult":
		f.results = append(f.results, e)
	case "Message":
		for _, around := range path {
			if around.name == "UnitTestResult" {
				f.messages[around] = e.text.String()
			}
		}
	case "TestMethod":
		if len(path) > 1 {
			f.classes[path[len(path)-2].attribute("id")] = e.attribute("className")
		}
	case "ResultSummary":
		f.outcome = e.attribute("outcome")
	case "Counters":
		f.total = e.attribute("total")
	}
}
