package quiet

import (
	"testing"
	"time"
)

func TestQuietHours(t *testing.T) {
	t.Parallel()
	for _, one := range []struct {
		hours []string
		zone  string
		at    string // UTC
		want  bool
	}{
		{nil, "UTC", "2026-11-18T23:00:00Z", false},
		{[]string{"22:00-07:00"}, "UTC", "2026-11-18T21:59:59Z", false},
		{[]string{"22:00-07:00"}, "UTC", "2026-11-18T22:00:00Z", true},
		{[]string{"22:00-07:00"}, "UTC", "2026-11-19T06:59:59Z", true},
		{[]string{"22:00-07:00"}, "UTC", "2026-11-19T07:00:00Z", false},
		{[]string{"22:00-07:00"}, "Asia/Tokyo", "2026-11-18T13:00:00Z", true},
		{[]string{"22:00-07:00"}, "Asia/Tokyo", "2026-11-18T22:00:00Z", false},
		// 2026-11-18 is a Wednesday.
		{[]string{"mon-fri 12:00-13:00"}, "UTC", "2026-11-18T12:30:00Z", true},
		{[]string{"mon-fri 12:00-13:00"}, "UTC", "2026-11-21T12:30:00Z", false},
		{[]string{"sat sun 00:00-24:00"}, "UTC", "2026-11-21T00:00:00Z", true},
		{[]string{"sat sun 00:00-24:00"}, "UTC", "2026-11-22T23:59:59Z", true},
		{[]string{"sat sun 00:00-24:00"}, "UTC", "2026-11-23T00:00:00Z", false},
		{[]string{"sat-mon 1:00-2:00"}, "UTC", "2026-11-23T01:00:00Z", true},
		// A night belongs to the day on which it begins.
		{[]string{"fri 22:00-07:00"}, "UTC", "2026-11-21T06:00:00Z", true},
		{[]string{"fri 22:00-07:00"}, "UTC", "2026-11-20T06:00:00Z", false},
		{[]string{"01:00-02:00", "03:00-04:00"}, "UTC", "2026-11-20T03:30:00Z", true},
		// In summer Berlin is two hours before UTC, in winter one.
		{[]string{"22:00-07:00"}, "Europe/Berlin", "2026-07-01T20:30:00Z", true},
		{[]string{"22:00-07:00"}, "Europe/Berlin", "2026-12-01T20:30:00Z", false},
	} {
		hours, err := Parse(one.hours, one.zone)
		if err != nil {
			t.Fatal(err)
		}
		at, err := time.Parse(time.RFC3339, one.at)
		if err != nil {
			t.Fatal(err)
		}
		if hours.In(at) != one.want {
			t.Errorf("%v in %s at %s: quiet is %v", one.hours, one.zone, one.at, !one.want)
		}
	}
}

func TestWrongHours(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "22:00", "22-07", "22:00-22:00", "24:00-07:00", "25:00-07:00", "22:60-07:00", "22:0-07:00", "22:00-24:01", "-1:00-02:00", "day 22:00-07:00",
		"mon-day 22:00-07:00", "22:00-07:00 mon", "mon", "22:00-07:00-08:00", "٢٢:00-07:00",
	} {
		if Check(text) == nil {
			t.Errorf("%q is taken", text)
		}
	}
	for _, zone := range []string{"", "Local", "Mars/Olympus", "../../etc/passwd", "JSTX"} {
		if _, err := Zone(zone); err == nil {
			t.Errorf("the zone %q is taken", zone)
		}
	}
}
