package github_test

import (
	"testing"

	"github.com/toryo-dev/toryo/internal/forge/forgetest"
	"github.com/toryo-dev/toryo/internal/forge/github"
	"github.com/toryo-dev/toryo/internal/testkit"
	"github.com/toryo-dev/toryo/internal/testkit/forgeworld"
)

const botToken = "ghp_of_the_bot"

// newFixture returns a fixture whose adapter reaches the server at the address.
func newFixture(t testing.TB, s *server, address string) *forgeworld.Fixture {
	t.Helper()
	fixture := forgeworld.NewFixture(s.world, botToken)
	made, err := github.New(github.Options{URL: address + apiPrefix, Token: botToken})
	if err != nil {
		t.Fatal(err)
	}
	fixture.Adapter = made
	return fixture
}

func TestConformance(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	forgetest.Run(t, newFixture(t, s, s.URL), forgetest.Options{})
}

func TestFaults(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	proxy := testkit.Faults(t, s.URL)
	forgetest.RunFaults(t, newFixture(t, s, proxy.URL), proxy, forgetest.Faults{
		Answer: testkit.Respond, FailAfter: testkit.FailAfter, CutBefore: testkit.CutBefore, CutAfter: testkit.CutAfter,
		CutWithin: testkit.CutWithin, HalfJSON: testkit.HalfJSON, Hang: testkit.Hang,
	}, forgetest.Paths{Item: "/issues/", Comments: "/comments", Pulls: "/pulls"})
}
