package gitlab_test

import (
	"testing"

	"github.com/toryo-dev/toryo/internal/forge/forgetest"
	"github.com/toryo-dev/toryo/internal/forge/gitlab"
	"github.com/toryo-dev/toryo/internal/testkit"
	"github.com/toryo-dev/toryo/internal/testkit/forgeworld"
)

const botToken = "glpat-of-the-bot"

// newFixture returns a fixture whose adapter reaches the server at the address.
func newFixture(t testing.TB, s *server, address string) *forgeworld.Fixture {
	t.Helper()
	fixture := forgeworld.NewFixture(s.world, botToken)
	made, err := gitlab.New(gitlab.Options{URL: address, Token: botToken})
	if err != nil {
		t.Fatal(err)
	}
	fixture.Adapter = made
	fixture.AfterReview = func(item *forgeworld.Item, review *forgeworld.Review) {
		if review.Body != "" {
			item.Comment(review.Author, review.Body)
		}
	}
	return fixture
}

func TestConformance(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	forgetest.Run(t, newFixture(t, s, s.URL), forgetest.Options{
		SilentReviews: true,
		Without:       map[string]string{"Dismissed": "GitLab has no dismissals: what people write with a review is a comment"},
	})
}

func TestFaults(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	proxy := testkit.Faults(t, s.URL)
	forgetest.RunFaults(t, newFixture(t, s, proxy.URL), proxy, forgetest.Faults{
		Answer: testkit.Respond, FailAfter: testkit.FailAfter, CutBefore: testkit.CutBefore, CutAfter: testkit.CutAfter,
		CutWithin: testkit.CutWithin, HalfJSON: testkit.HalfJSON, Hang: testkit.Hang,
	}, forgetest.Paths{Item: "/issues/", Comments: "/notes", Pulls: "/merge_requests"})
}
