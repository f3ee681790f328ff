package judge

import (
	_ "embed" // for the schema
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

//go:embed judgement.schema.json
var schemaText string

var schema = sync.OnceValues(func() (*jsonschema.Resolved, error) {
	var parsed jsonschema.Schema
	if err := json.Unmarshal([]byte(schemaText), &parsed); err != nil {
		return nil, fmt.Errorf("read the schema of judgements: %w", err)
	}
	return parsed.Resolve(nil)
})

// form is a judgement as the schema has it.
type form struct {
	Verdict              string   `json:"verdict,omitempty"`
	Overall              string   `json:"overall_review"`
	Strengths            []remark `json:"strengths"`
	Weaknesses           []remark `json:"weaknesses"`
	ImportantPoints      []remark `json:"important_points"`
	FutureConsiderations []remark `json:"future_considerations"`
}

type remark struct {
	Text    string `json:"text"`
	Numbers []int  `json:"paragraph_numbers"`
	Line    int    `json:"line,omitempty"`
	Old     bool   `json:"old,omitempty"`
}

// The verdicts, as every forge has them.
const (
	approve        = "approve"
	comment        = "comment"
	requestChanges = "request_changes"
)

// readForm reads a judgement that a model wrote, with the usual slips fixed, and
// validates what that gives.
func readForm(text string, paper Paper) (form, error) {
	object, ok := llm.LenientObject(text)
	if !ok {
		return form{}, errors.New("it is not a JSON object")
	}
	plain, err := json.Marshal(object)
	if err != nil {
		return form{}, err
	}
	lenient, err := ParseJudgement(plain)
	if err != nil {
		return form{}, err
	}
	made := form{Overall: strings.TrimSpace(lenient.Overall)}
	if paper.Hunks != nil {
		verdict, _ := object["verdict"].(string)
		made.Verdict = strings.ToLower(strings.TrimSpace(verdict))
		if !slices.Contains([]string{approve, comment, requestChanges}, made.Verdict) {
			return form{}, fmt.Errorf("verdict is %q, which is none of approve, comment, request_changes", textfmt.Shorten(verdict, longestShown))
		}
	}
	for field, into := range made.lists() {
		*into = []remark{}
		for _, item := range lenient.Items {
			if item.Field == field {
				*into = append(*into, readRemark(item, paper))
			}
		}
	}
	if err := made.validate(); err != nil {
		return form{}, err
	}
	return made, nil
}

// longestShown is how many characters of what a model wrote an error has.
const longestShown = 100

func (f *form) lists() map[string]*[]remark {
	return map[string]*[]remark{
		Strengths: &f.Strengths, Weaknesses: &f.Weaknesses,
		ImportantPoints: &f.ImportantPoints, FutureConsiderations: &f.FutureConsiderations,
	}
}

func readRemark(item Item, paper Paper) remark {
	made := remark{Text: textOf(item.JSON), Numbers: []int{}}
	for _, number := range item.Numbers {
		if slices.ContainsFunc(paper.Sections, func(s Section) bool { return s.Number == number }) {
			made.Numbers = append(made.Numbers, number)
		}
	}
	var place struct {
		Line json.RawMessage `json:"line"`
		Old  any             `json:"old"`
	}
	if json.Unmarshal(item.JSON, &place) != nil {
		return made // it is only a text
	}
	if line, err := readNumbers(place.Line); err == nil && len(line) == 1 && line[0] > 0 {
		made.Line, made.Old = line[0], place.Old == true
	}
	return made
}

func (f *form) validate() error {
	resolved, err := schema()
	if err != nil {
		return err
	}
	encoded, err := json.Marshal(f)
	if err != nil {
		return err
	}
	var value any
	if err := json.Unmarshal(encoded, &value); err != nil {
		return err
	}
	return resolved.Validate(value)
}
