// Package quiet knows the hours in which people are not to be disturbed.
package quiet

import (
	"slices"
	"strconv"
	"strings"
	"time"

	_ "time/tzdata" // containers and Windows have no database of time zones

	"github.com/toryo-dev/toryo/internal/task"
)

// Hours are times of the week in a time zone. The zero value has none.
type Hours struct {
	spans []span
	zone  *time.Location
}

// span is a part of some days. One that ends before it begins goes on into the next day.
type span struct {
	days        [7]bool // by time.Weekday: on which it begins
	from, until int     // minutes of the day
}

const minutesOfDay = 24 * 60

var dayNames = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

// Parse reads hours such as "22:00-07:00", "mon-fri 12:00-13:00" and "sat sun 00:00-24:00". The
// zone is a name of the IANA database, such as Asia/Tokyo.
func Parse(hours []string, zone string) (Hours, error) {
	in, err := Zone(zone)
	if err != nil {
		return Hours{}, err
	}
	all := Hours{zone: in}
	for _, text := range hours {
		one, err := parseSpan(text)
		if err != nil {
			return Hours{}, err
		}
		all.spans = append(all.spans, one)
	}
	return all, nil
}

// Zone finds a time zone by its name in the IANA database.
func Zone(name string) (*time.Location, error) {
	in, err := time.LoadLocation(name)
	if err != nil || name == "" || name == "Local" { // Local is that of the machine, which differs between servers
		return nil, task.Errorf(task.Invalid, "%q is not a time zone", name).WithHint("write it like Europe/Berlin or Asia/Tokyo, or UTC")
	}
	return in, nil
}

// Check says whether a text is one span of hours.
func Check(text string) error {
	_, err := parseSpan(text)
	return err
}

func parseSpan(text string) (s span, err error) {
	wrong := task.Errorf(task.Invalid, "%q is not a span of hours", text).WithHint("write it like 22:00-07:00, mon-fri 12:00-13:00 or sat sun 00:00-24:00")
	words := strings.Fields(strings.ToLower(text))
	if len(words) == 0 {
		return span{}, wrong
	}
	hours := words[len(words)-1]
	first, last, found := strings.Cut(hours, "-")
	var ok, fine bool
	s.from, ok = minute(first)
	s.until, fine = minute(last)
	if !found || !ok || !fine || s.from == s.until || s.from == minutesOfDay {
		return span{}, wrong
	}
	for _, word := range words[:len(words)-1] {
		if !s.addDays(word) {
			return span{}, wrong
		}
	}
	if len(words) == 1 {
		s.days = [7]bool{true, true, true, true, true, true, true}
	}
	return s, nil
}

// minute reads a time of day: 00:00 to 24:00.
func minute(text string) (int, bool) {
	hour, rest, found := strings.Cut(text, ":")
	h, err := strconv.ParseUint(hour, 10, 8)
	m, wrong := strconv.ParseUint(rest, 10, 8)
	at := int(h*60 + m)
	return at, found && err == nil && wrong == nil && len(hour) <= 2 && len(rest) == 2 && m < 60 && at <= minutesOfDay
}

// addDays adds a day, or all from one to another: sat, mon-fri, sat-mon.
func (s *span) addDays(word string) bool {
	first, last, found := strings.Cut(word, "-")
	if !found {
		last = first
	}
	from, until := slices.Index(dayNames, first), slices.Index(dayNames, last)
	if from < 0 || until < 0 {
		return false
	}
	for day := from; ; day = (day + 1) % len(dayNames) {
		s.days[day] = true
		if day == until {
			return true
		}
	}
}

// In reports whether it is quiet at a moment.
func (h Hours) In(at time.Time) bool {
	if len(h.spans) == 0 {
		return false
	}
	local := at.In(h.zone)
	now, today := local.Hour()*60+local.Minute(), int(local.Weekday())
	yesterday := (today + 6) % 7
	return slices.ContainsFunc(h.spans, func(s span) bool {
		if s.from < s.until {
			return s.days[today] && s.from <= now && now < s.until
		}
		return s.days[today] && s.from <= now || s.days[yesterday] && now < s.until
	})
}
