package drill

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"
)

// kind is what is done to the installation.
type kind string

// The kinds, in the order of the report.
const (
	agentKilled      kind = "agent killed"
	agentEnded       kind = "agent asked to end"
	agentFrozen      kind = "agent frozen for a while"
	agentCut         kind = "agent cut off from the servers for a while"
	agentDisk        kind = "disk of an agent full for a while"
	serverKilled     kind = "server killed"
	serverEnded      kind = "server asked to end"
	serverFrozen     kind = "server frozen for a while"
	serverDisk       kind = "disk of a server full for a while"
	databaseCut      kind = "all connections to the database cut"
	databaseRestart  kind = "database restarted"
	databaseClockSet kind = "clock of the database set"
)

// fault is one of them at its moment.
type fault struct {
	at     time.Duration // since the beginning
	kind   kind
	target int           // which agent or server
	lasts  time.Duration // of what ends
	clock  time.Duration // by how much the clock is ahead then
}

// chances are how many of a hundred or so faults are of which kind, from how long to how long
// those last that end, and what they are done to.
var chances = []struct {
	kind     kind
	weight   int
	from, to time.Duration
	of       func(d Drill) int // how many targets there are; 0 means that it is not possible here
}{
	{agentKilled, 20, 0, 0, Drill.killedAgents},
	{agentEnded, 10, 0, 0, Drill.killedAgents},
	// Leases last six seconds: some of what is frozen or cut off loses them.
	{agentFrozen, 10, time.Second, 12 * time.Second, func(d Drill) int { return d.Agents }},
	{agentCut, 20, 500 * time.Millisecond, 10 * time.Second, func(d Drill) int { return d.Agents }},
	{agentDisk, 5, 2 * time.Second, 20 * time.Second, func(d Drill) int { return d.ifRoot(d.Agents) }},
	{serverKilled, 10, 0, 0, Drill.killedServers},
	{serverEnded, 5, 0, 0, Drill.killedServers},
	{serverFrozen, 5, time.Second, 12 * time.Second, func(d Drill) int { return d.Servers }},
	{serverDisk, 5, 2 * time.Second, 20 * time.Second, func(d Drill) int { return d.ifRoot(d.Servers) }},
	{databaseCut, 6, 0, 0, func(d Drill) int { return oneIf(d.CutDatabase != nil) }},
	{databaseRestart, 1, 0, 0, func(d Drill) int { return oneIf(d.RestartDatabase != nil) }},
	{databaseClockSet, 3, 0, 0, func(d Drill) int { return oneIf(d.SetClock != nil) }},
}

func oneIf(is bool) int {
	if is {
		return 1
	}
	return 0
}

func (d Drill) ifRoot(count int) int { return count * oneIf(d.SmallDisks) }

// spareFrom is how many servers or agents there are at least if the last of them is to live
// through the whole drill, so that it can be seen whether it grows.
const spareFrom = 3

func (d Drill) killedAgents() int  { return d.Agents - oneIf(d.Agents >= spareFrom) }
func (d Drill) killedServers() int { return d.Servers - oneIf(d.Servers >= spareFrom) }

const (
	// clockOff is by how much the clock of the database differs from those of the servers and
	// agents: by more than any lease and any hold on a write lasts.
	clockOff = 10 * time.Minute
	// furthestStep is by how much it is set forward or back from there. Servers read it once a
	// minute, so that for a while they do not agree. What is held until a moment is held longer
	// when the clock is set back.
	furthestStep = 90 * time.Second
)

// ClockOff is by how much the clock of the database is ahead in the drill with a seed.
func ClockOff(seed uint64) time.Duration {
	if seed%2 == 0 {
		return clockOff
	}
	return -clockOff
}

// schedule is all that will be done to the installation. It follows from the seed and from the
// numbers of the drill alone. The time between two faults is Every on average.
func (d Drill) schedule() []fault {
	random := rand.New(rand.NewPCG(d.Seed, 0)) //nolint:gosec // not for secrets
	between := func(from, to time.Duration) time.Duration {
		return from + time.Duration(random.Int64N(int64(to-from)+1))
	}
	sum := 0
	for _, c := range chances {
		sum += c.weight * min(1, c.of(d))
	}
	var faults []fault
	if d.RestartDatabase != nil { // also in a short drill, which may come to no other
		faults = append(faults, fault{at: d.Lasts / 2, kind: databaseRestart})
	}
	for at := between(0, 2*d.Every); at < d.Lasts; at += between(0, 2*d.Every) {
		pick := random.IntN(sum)
		for _, c := range chances {
			if pick -= c.weight * min(1, c.of(d)); pick < 0 {
				faults = append(faults, fault{
					at: at, kind: c.kind, target: random.IntN(c.of(d)), lasts: between(c.from, c.to), clock: ClockOff(d.Seed) + between(-furthestStep, furthestStep),
				})
				break
			}
		}
	}
	slices.SortStableFunc(faults, func(a, b fault) int { return cmp.Compare(a.at, b.at) })
	return faults
}
