package storetest

import (
	"testing"

	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

var peopleChecks = []check{
	{"a user of a machine is a person", machineUsers},
	{"what the name of a machine's user owns goes to the person", giveReviews},
	{"what belongs to a name is the account's, however it is written", ownersInOtherCase},
	{"it is known what belongs to a name, and who may have it", belongings},
	{"a removed user has neither tokens nor what was shared", removedUsersTokens},
	{"a review is shared with people, or with everyone", shareReview},
	{"with whom a review is shared is set at once", setShares},
	{"reviews are listed by who may read them", readableReviews},
	{"questions are listed by who may read them", readableQuestions},
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

func ownersInOtherCase(t *testing.T, s store.Store) {
	add := func(owner string) string {
		return got[store.Review](t)(s.AddReview(t.Context(), store.Review{Owner: owner})).ID
	}
	ofToken, ofOther := add("ALICE"), add("alicia")
	thread := got[store.Thread](t)(s.AddThread(t.Context(), store.Thread{ReviewID: ofToken, Owner: "ALICE"}))
	question := got[store.Question](t)(s.AddQuestion(t.Context(), store.Question{Owner: "ALICE", Text: "why?"}))
	got[store.User](t)(s.AddUser(t.Context(), store.User{Login: "Alice"}))
	equal(t, got[store.Review](t)(s.Review(t.Context(), ofToken)).Owner, "Alice")
	equal(t, got[store.Thread](t)(s.Thread(t.Context(), thread.ID)).Owner, "Alice")
	equal(t, got[store.Question](t)(s.Question(t.Context(), question.ID)).Owner, "Alice")
	equal(t, got[store.Review](t)(s.Review(t.Context(), ofOther)).Owner, "alicia")
	// A link does the same for what is there since.
	later := add("aLICE")
	equal(t, got[int64](t)(s.LinkMachineUser(t.Context(), "alice", "alice")), 1)
	equal(t, got[store.Review](t)(s.Review(t.Context(), later)).Owner, "Alice")
}

func belongings(t *testing.T, s store.Store) {
	of := func(name string) store.Belongings { return got[store.Belongings](t)(s.BelongingsOf(t.Context(), name)) }
	equal(t, of("ci"), store.Belongings{})
	one := got[store.Review](t)(s.AddReview(t.Context(), store.Review{Owner: "CI"}))
	got[store.Thread](t)(s.AddThread(t.Context(), store.Thread{ReviewID: one.ID, Owner: "ci"}))
	got[store.Question](t)(s.AddQuestion(t.Context(), store.Question{Owner: "cI", Text: "why?"}))
	for i, token := range []store.Token{{Name: "Ci"}, {Name: "ci", Role: "agent"}, {Name: "ci", Person: "bob"}, {Name: "ci", RevokedAt: noon}, {}} {
		token.Hash = []byte{byte(i + 1)}
		got[store.Token](t)(s.AddToken(t.Context(), token))
	}
	equal(t, of("cI"), store.Belongings{Reviews: 1, Threads: 1, Questions: 1, Tokens: 1})
	must(t, s.ExpectUser(t.Context(), "ci"))
	equal(t, of("ci").Expected, store.AnyIdentity)
	got[store.User](t)(s.AddUser(t.Context(), store.User{Login: "ci", Identity: "https://id.example 7"}))
	equal(t, of("ci").Expected, "")
	wantCode(t, s.ExpectUser(t.Context(), "CI"), task.Conflict)
	wantCode(t, s.ExpectUser(t.Context(), ""), task.Invalid)
	must(t, s.RemoveUser(t.Context(), "ci"))
	equal(t, of("ci"), store.Belongings{Reviews: 1, Threads: 1, Questions: 1, Expected: "https://id.example 7"})
	got[store.BoardUser](t)(s.AddBoardUser(t.Context(), store.BoardUser{Login: "Bob-example.com", Access: store.BoardAdmin}))
	equal(t, of("bob@example.com"), store.Belongings{Board: true})
	must(t, s.RemoveBoardUser(t.Context(), "bob-example.com", noon))
	equal(t, of("bob@example.com"), store.Belongings{Board: true}) // its login is nobody else's
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
	hers, his, nobodys, byName := token("laptop", "Alice"), token("phone", "bob"), token("ci", ""), token("aLICE", "")
	ofAgent := got[store.Token](t)(s.AddToken(t.Context(), store.Token{Name: "alice", Role: "agent", Hash: []byte("agent")}))
	equal(t, got[store.Token](t)(s.TokenByHash(t.Context(), hers.Hash)).Person, "Alice")
	must(t, s.RemoveUser(t.Context(), "alice"))
	for _, one := range []struct {
		token   store.Token
		revoked bool
	}{{hers, true}, {byName, true}, {his, false}, {nobodys, false}, {ofAgent, false}} {
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

func setShares(t *testing.T, s store.Store) {
	wantCode(t, s.SetShares(t.Context(), "nothing", []string{"bob"}, noon), task.NotFound)
	one := got[store.Review](t)(s.AddReview(t.Context(), store.Review{Owner: "alice"}))
	for _, with := range [][]string{{"bob", "Carol"}, {"carol", store.Everyone, "carol"}, nil} {
		must(t, s.SetShares(t.Context(), one.ID, with, noon))
		shared := got[[]string](t)(s.SharesOf(t.Context(), one.ID))
		equal(t, len(shared), min(len(with), 2))
		equal(t, got[bool](t)(s.MayRead(t.Context(), one.ID, "cAROL")), with != nil)
	}
	must(t, s.SetShares(t.Context(), one.ID, []string{"bob"}, noon))
	wantCode(t, s.SetShares(t.Context(), one.ID, []string{"carol", long(3000)}, noon), task.TooLarge)
	equal(t, got[[]string](t)(s.SharesOf(t.Context(), one.ID)), []string{"bob"})
}

func readableQuestions(t *testing.T, s store.Store) {
	question := func(owner, text string) store.Question {
		return got[store.Question](t)(s.AddQuestion(t.Context(), store.Question{Owner: owner, Text: text, PurposeText: "why"}))
	}
	list := func(filter store.QuestionFilter) (texts []string) {
		for _, one := range got[[]store.Question](t)(s.ListQuestions(t.Context(), filter)) {
			texts = append(texts, one.Text)
		}
		return texts
	}
	hers, everyones, his, shared := question("alice", "hers"), question("", "everyone's"), question("bob", "his"), question("alice", "shared")
	equal(t, question("alice", "hers").ID, hers.ID)
	if again := question("bob", "hers"); again.ID == hers.ID {
		t.Error("what two people keep is one question")
	}
	equal(t, list(store.QuestionFilter{Reader: "alice"}), []string{"hers", "everyone's", "shared"})
	equal(t, list(store.QuestionFilter{Reader: "carol"}), []string{"everyone's"})
	equal(t, list(store.QuestionFilter{Reader: "alice", After: hers.ID, Limit: 1}), []string{"everyone's"})
	equal(t, list(store.QuestionFilter{Reader: "alice", Newest: true, Limit: 1}), []string{"shared"})
	equal(t, list(store.QuestionFilter{Reader: "alice", ID: his.ID}), nil)
	review := got[store.Review](t)(s.AddReview(t.Context(), store.Review{Owner: "alice", QuestionID: shared.ID}))
	other := got[store.Review](t)(s.AddReview(t.Context(), store.Review{Owner: "alice", QuestionID: shared.ID}))
	of := got[store.Review](t)(s.AddReview(t.Context(), store.Review{Owner: "carol", QuestionID: everyones.ID}))
	must(t, s.ShareReview(t.Context(), review.ID, "Carol", noon))
	equal(t, list(store.QuestionFilter{Reader: "carol"}), []string{"everyone's", "shared"})
	must(t, s.UnshareReview(t.Context(), review.ID, "carol"))
	equal(t, list(store.QuestionFilter{Reader: "carol"}), []string{"everyone's"})
	brief := got[[]store.Question](t)(s.ListQuestions(t.Context(), store.QuestionFilter{Reader: "dave", Brief: true}))
	equal(t, len(brief), 1)
	equal(t, brief[0].PurposeText, "")
	// A question goes with its last review, unless it is everyone's.
	must(t, s.DeleteReview(t.Context(), review.ID))
	got[store.Question](t)(s.Question(t.Context(), shared.ID))
	must(t, s.DeleteReview(t.Context(), other.ID))
	_, err := s.Question(t.Context(), shared.ID)
	wantCode(t, err, task.NotFound)
	must(t, s.DeleteReview(t.Context(), of.ID))
	got[store.Question](t)(s.Question(t.Context(), everyones.ID))
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
		brief[0].AnswerText != "" || len(brief[0].Judgement) > 0 || brief[0].CustomQuestionText != pull.CustomQuestionText || brief[0].Title != pull.CustomQuestionText {
		t.Errorf("in brief it is %+v", brief)
	}
	must(t, s.ShareReview(t.Context(), other, store.Everyone, noon))
	equal(t, list(store.ReviewFilter{Reader: "bob", After: own}), []string{other, shared})
	equal(t, list(store.ReviewFilter{Reader: "carol"}), []string{other})
}
