package judge

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/toryo-dev/toryo/internal/task"
)

// The fields of a judgement that hold items.
const (
	Strengths            = "strengths"
	Weaknesses           = "weaknesses"
	ImportantPoints      = "important_points"
	FutureConsiderations = "future_considerations"
)

// ItemFields lists the fields that hold items.
var ItemFields = []string{Strengths, Weaknesses, ImportantPoints, FutureConsiderations}

const overallField = "overall_review"

// Judgement is what a review says.
type Judgement struct {
	Overall string
	Items   []Item // of all fields, in the order of the JSON
	fields  map[string]json.RawMessage
}

// Item is one remark of a judgement.
type Item struct {
	Field   string          // one of ItemFields
	JSON    json.RawMessage // as it was given, on one line, without escapes such as \u5951
	Numbers []int           // of the sections that it names
}

// ParseJudgement reads the JSON of a review. It is lenient in a defined way:
//
//   - Fields that are missing or null are empty, and fields that are not known are
//     left alone.
//   - An item is an object or a text.
//   - paragraph_numbers and paragraph_number each are a number or a list of
//     numbers; a number may be written as text, in ASCII or full-width digits and
//     with § in front.
//
// Everything else is Invalid, and the error names the place.
func ParseJudgement(data []byte) (Judgement, error) {
	j := Judgement{fields: map[string]json.RawMessage{}}
	order, err := readObject(data, j.fields)
	if err != nil {
		return Judgement{}, err
	}
	if overall, given := given(j.fields[overallField]); given {
		if json.Unmarshal(overall, &j.Overall) != nil {
			return Judgement{}, wrong(overallField, "is not a text")
		}
	}
	for _, field := range order {
		if !slices.Contains(ItemFields, field) {
			continue
		}
		items, err := readItems(field, j.fields[field])
		if err != nil {
			return Judgement{}, err
		}
		j.Items = append(j.Items, items...)
	}
	return j, nil
}

func wrong(place, what string) error {
	return task.Errorf(task.Invalid, "in the review's JSON, %s %s", place, what)
}

// given reports whether a value is there and not null.
func given(raw json.RawMessage) (json.RawMessage, bool) {
	raw = bytes.TrimSpace(raw)
	return raw, len(raw) > 0 && !bytes.Equal(raw, []byte("null"))
}

// readObject reads the fields of an object and returns their names in order. Of a
// field that is there twice the last counts, at the place of the first.
func readObject(data []byte, into map[string]json.RawMessage) (order []string, err error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	notObject := task.Errorf(task.Invalid, "the review is not a JSON object")
	if first, err := decoder.Token(); err != nil || first != json.Delim('{') {
		return nil, notObject
	}
	for decoder.More() {
		token, err := decoder.Token()
		name, isName := token.(string)
		if err != nil || !isName {
			return nil, notObject
		}
		var value json.RawMessage
		if decoder.Decode(&value) != nil {
			return nil, notObject
		}
		if _, twice := into[name]; !twice {
			order = append(order, name)
		}
		into[name] = value
	}
	if _, err := decoder.Token(); err != nil {
		return nil, notObject
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, task.Errorf(task.Invalid, "something follows the review's JSON")
	}
	return order, nil
}

func readItems(field string, raw json.RawMessage) ([]Item, error) {
	list, there := given(raw)
	if !there {
		return nil, nil
	}
	var entries []json.RawMessage
	if json.Unmarshal(list, &entries) != nil {
		return nil, wrong(field, "is not a list")
	}
	var items []Item
	for _, entry := range entries {
		if _, there := given(entry); !there {
			continue
		}
		item, err := readItem(field, entry)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	return items, nil
}

func readItem(field string, entry json.RawMessage) (Item, error) {
	line, err := plainJSON(entry)
	if err != nil {
		return Item{}, wrong(field, "is not JSON")
	}
	item := Item{Field: field, JSON: line}
	switch item.JSON[0] {
	case '"':
		return item, nil
	case '{':
	default:
		return Item{}, wrong(field, "has an item that is neither an object nor a text")
	}
	var names struct {
		Many json.RawMessage `json:"paragraph_numbers"`
		One  json.RawMessage `json:"paragraph_number"`
	}
	if err := json.Unmarshal(item.JSON, &names); err != nil {
		return Item{}, wrong(field, "is not JSON")
	}
	for name, raw := range map[string]json.RawMessage{"paragraph_numbers": names.Many, "paragraph_number": names.One} {
		numbers, err := readNumbers(raw)
		if err != nil {
			return Item{}, wrong(field+"."+name, err.Error())
		}
		item.Numbers = append(item.Numbers, numbers...)
	}
	slices.Sort(item.Numbers)
	item.Numbers = slices.Compact(item.Numbers)
	return item, nil
}

var errNoNumber = errors.New("has something in it that is not a whole number")

func readNumbers(raw json.RawMessage) ([]int, error) {
	value, there := given(raw)
	if !there {
		return nil, nil
	}
	if value[0] != '[' {
		number, err := readNumber(value)
		return []int{number}, err
	}
	var numbers []int
	if json.Unmarshal(value, &numbers) == nil && !bytes.Contains(value, []byte("null")) && within(numbers) {
		return numbers, nil // as nearly all are
	}
	var list []json.RawMessage
	if err := json.Unmarshal(value, &list); err != nil {
		return nil, errNoNumber
	}
	numbers = nil
	for _, entry := range list {
		number, err := readNumber(entry)
		if err != nil {
			return nil, err
		}
		numbers = append(numbers, number)
	}
	return numbers, nil
}

// mostNumber is larger than any number of a section.
const mostNumber = 1e9

func within(numbers []int) bool {
	return !slices.ContainsFunc(numbers, func(n int) bool { return n >= mostNumber || n <= -mostNumber })
}

func readNumber(raw json.RawMessage) (int, error) {
	raw, there := given(raw)
	if !there {
		return 0, errNoNumber
	}
	if raw[0] == '"' {
		var text string
		if json.Unmarshal(raw, &text) == nil {
			if number, ok := ParseNumber(strings.TrimPrefix(strings.TrimSpace(text), "§")); ok {
				return number, nil
			}
		}
		return 0, errNoNumber
	}
	var number float64
	if json.Unmarshal(raw, &number) != nil || number != math.Trunc(number) || math.Abs(number) >= mostNumber {
		return 0, errNoNumber
	}
	return int(number), nil
}

// Related returns the items that name any of the sections, each once, in the order
// of the JSON. Two items that say the same are one.
func (j Judgement) Related(numbers []int) []Item {
	var related []Item
	seen := map[string]bool{}
	for _, item := range j.Items {
		names := slices.ContainsFunc(item.Numbers, func(n int) bool { return slices.Contains(numbers, n) })
		if names && !seen[string(item.JSON)] {
			seen[string(item.JSON)] = true
			related = append(related, item)
		}
	}
	return related
}

// Text is what the item says: its text, or all of it as JSON if it has none that we
// know of.
func (i Item) Text() string {
	if text := textOf(i.JSON); text != "" {
		return text
	}
	return string(i.JSON)
}

// textNames are the names that people and models give to the text of an item.
var textNames = []string{"text", "description", "comment", "content", "point", "detail"}

func textOf(entry json.RawMessage) string {
	var text string
	if json.Unmarshal(entry, &text) == nil {
		return text
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(entry, &object) != nil {
		return ""
	}
	for _, name := range textNames {
		if json.Unmarshal(object[name], &text) == nil && text != "" {
			return text
		}
	}
	return ""
}
