package storetest

import (
	"testing"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

var peopleChecks = []check{
	{"a user of a machine is a person", machineUsers},
	{"what the name of a machine's user owns goes to the person", giveReviews},
	{"a removed user has neither tokens nor what was shared", removedUsersTokens},
	{"a review is shared with people, or with everyone", shareReview},
	{"reviews are listed by who may read them", readableReviews},
}

func machineUsers(t *testing.T, s store.Store) {
	_, err := s.PersonHere(t.Context(), "root")
	wantCode(t, err, task.NotFound)
	_, err = s.LinkMachineUser(t.Context(), "root", "alice")
	wantCode(t, err, task.NotFound)
	_, err = s.LinkMachineUser(t.Context(), "", "alice")
	wantCode(t, err, task.Invalid)
	alice := got[store.User](t)(s.AddUser(t.Context(), store.User{Login: "Alice", CreatedAt: noon}))
	got[store.User](t)(s.AddUser(t.Context(), store.User{Login: "bob", CreatedAt: noon}))
	got[int64](t)(s.LinkMachineUser(t.Context(), "root", "bob"))
	got[int64](t)(s.LinkMachineUser(t.Context(), "root", "aLICE")) // in place of bob
	got[int64](t)(s.LinkMachineUser(t.Context(), "robert", "bob"))
	equal(t, got[store.User](t)(s.PersonHere(t.Context(), "root")), alice)
	equal(t, got[[]store.MachineUser](t)(s.ListMachineUsers(t.Context())), []store.MachineUser{{Name: "robert", Login: "bob"}, {Name: "root", Login: "Alice"}})
	must(t, s.RemoveUser(t.Context(), "bob"))
	_, err = s.PersonHere(t.Context(), "robert")
	wantCode(t, err, task.NotFound)
	must(t, s.UnlinkMachineUser(t.Context(), "root"))
	wantCode(t, s.UnlinkMachineUser(t.Context(), "root"), task.NotFound)
	equal(t, len(got[[]store.MachineUser](t)(s.ListMachineUsers(t.Context()))), 0)
}

func giveReviews(t *testing.T, s store.Store) {
	for _, login := range []string{"alice", "bob"} {
		got[store.User](t)(s.AddUser(t.Context(), store.User{Login: login}))
	}
	ofRoot := got[store.Review](t)(s.AddReview(t.Context(), store.Review{Owner: "root"}))
	ofBob := got[store.Review](t)(s.AddReview(t.Context(), store.Review{Owner: "bob"}))
	thread := got[store.Thread](t)(s.AddThread(t.Context(), store.Thread{ReviewID: ofRoot.ID, Owner: "root"}))
	equal(t, got[int64](t)(s.LinkMachineUser(t.Context(), "root", "Alice")), 1)
	equal(t, got[store.Review](t)(s.Review(t.Context(), ofRoot.ID)).Owner, "alice")
	equal(t, got[store.Thread](t)(s.Thread(t.Context(), thread.ID)).Owner, "alice")
	// What belongs to somebody with an account stays where it is.
	equal(t, got[int64](t)(s.LinkMachineUser(t.Context(), "bob", "alice")), 0)
	equal(t, got[store.Review](t)(s.Review(t.Context(), ofBob.ID)).Owner, "bob")
}

func removedUsersTokens(t *testing.T, s store.Store) {
	for _, login := range []string{"Alice", "bob"} {
		got[store.User](t)(s.AddUser(t.Context(), store.User{Login: login}))
	}
	token := func(name, person string) store.Token {
		return got[store.Token](t)(s.AddToken(t.Context(), store.Token{Name: name, Person: person, Hash: []byte(name)}))
	}
	one := got[store.Review](t)(s.AddReview(t.Context(), store.Review{Owner: "bob"}))
	must(t, s.ShareReview(t.Context(), one.ID, "alice", noon))
	hers, his, nobodys := token("laptop", "Alice"), token("phone", "bob"), token("ci", "")
	equal(t, got[store.Token](t)(s.TokenByHash(t.Context(), hers.Hash)).Person, "Alice")
	must(t, s.RemoveUser(t.Context(), "alice"))
	for _, one := range []struct {
		token   store.Token
		revoked bool
	}{{hers, true}, {his, false}, {nobodys, false}} {
		if now := got[store.Token](t)(s.TokenByHash(t.Context(), one.token.Hash)); now.RevokedAt.IsZero() == one.revoked {
			t.Errorf("the token %s was revoked at %s", now.Name, now.RevokedAt)
		}
	}
	equal(t, got[bool](t)(s.MayRead(t.Context(), one.ID, "alice")), false)
}

func shareReview(t *testing.T, s store.Store) {
	wantCode(t, s.ShareReview(t.Context(), "nothing", "bob", noon), task.NotFound)
	one := got[store.Review](t)(s.AddReview(t.Context(), store.Review{Owner: "alice"}))
	may := func(login string) bool { return got[bool](t)(s.MayRead(t.Context(), one.ID, login)) }
	equal(t, may("bob"), false)
	for range 2 {
		must(t, s.ShareReview(t.Context(), one.ID, "Bob", noon))
	}
	equal(t, may("bOB"), true)
	equal(t, may("carol"), false)
	must(t, s.ShareReview(t.Context(), one.ID, store.Everyone, noon))
	equal(t, may("carol"), true)
	equal(t, got[[]string](t)(s.SharesOf(t.Context(), one.ID)), []string{store.Everyone, "Bob"})
	for _, login := range []string{"BOB", store.Everyone, "dave"} {
		must(t, s.UnshareReview(t.Context(), one.ID, login))
	}
	equal(t, may("bob") || may("carol"), false)
	must(t, s.ShareReview(t.Context(), one.ID, "bob", noon))
	must(t, s.DeleteReview(t.Context(), one.ID))
	equal(t, may("bob"), false)
}

func readableReviews(t *testing.T, s store.Store) {
	add := func(one store.Review) string { return got[store.Review](t)(s.AddReview(t.Context(), one)).ID }
	own, other, shared := add(store.Review{Owner: "bob"}), add(store.Review{Owner: "alice"}), add(store.Review{Owner: "alice"})
	pull := pullReview("abc")
	pull.Owner = ""
	ofPull := add(pull)
	must(t, s.ShareReview(t.Context(), shared, "Bob", noon))
	list := func(filter store.ReviewFilter) (ids []string) {
		for _, one := range got[[]store.Review](t)(s.ListReviews(t.Context(), filter)) {
			ids = append(ids, one.ID)
		}
		return ids
	}
	equal(t, list(store.ReviewFilter{Reader: "bob"}), []string{own, shared})
	equal(t, list(store.ReviewFilter{Reader: "bob", Pulls: true}), []string{own, shared, ofPull})
	equal(t, list(store.ReviewFilter{Reader: "bob", Pulls: true, Newest: true, Limit: 2}), []string{ofPull, shared})
	equal(t, list(store.ReviewFilter{Reader: "bob", Pulls: true, Newest: true, Before: shared}), []string{own})
	if brief := got[[]store.Review](t)(s.ListReviews(t.Context(), store.ReviewFilter{Pull: pull.Pull, Brief: true})); len(brief) != 1 ||
		brief[0].AnswerText != "" || len(brief[0].Judgement) > 0 || brief[0].CustomQuestionText != pull.CustomQuestionText {
		t.Errorf("in brief it is %+v", brief)
	}
	must(t, s.ShareReview(t.Context(), other, store.Everyone, noon))
	equal(t, list(store.ReviewFilter{Reader: "bob", After: own}), []string{other, shared})
	equal(t, list(store.ReviewFilter{Reader: "carol"}), []string{other})
}
