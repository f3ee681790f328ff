package web

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// failedSignIn sends a sign-in with a wrong password from an address.
func (h *house) failedSignIn(login, address string) int {
	form := url.Values{"login": {login}, "password": {"wrong"}}
	request := httptest.NewRequest(http.MethodPost, "/signin", strings.NewReader(form.Encode()))
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.RemoteAddr = address
	answer := httptest.NewRecorder()
	h.pages.ServeHTTP(answer, request)
	return answer.Code
}

// Whoever fails to sign in leaves nothing behind that grows with the attempts: not
// by long logins, nor by many addresses, nor after being refused.
func TestFailedSignInsDoNotFillTheDatabase(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	for range 3 {
		if status := h.failedSignIn(strings.Repeat("x", 1<<20), "192.0.2.1:1"); status != http.StatusRequestEntityTooLarge {
			t.Errorf("a login of 1 MB answers %d", status)
		}
	}
	if got := h.audit(t); len(got) != 0 {
		t.Errorf("logins of 1 MB leave %d entries", len(got))
	}
	seen := map[int]int{}
	for i := range 40 {
		seen[h.failedSignIn(fmt.Sprintf("user%d", i), "192.0.2.2:1")]++
	}
	if seen[http.StatusUnauthorized] != 31 || seen[http.StatusTooManyRequests] != 9 {
		t.Errorf("40 attempts of one address are answered %v", seen)
	}
	if got := h.audit(t); len(got) != 31 {
		t.Errorf("%d entries; those that were refused are not to be noted", len(got))
	}
	for i := range 20 {
		h.failedSignIn("someone", fmt.Sprintf("198.51.100.%d:1", i))
		h.failedSignIn(fmt.Sprintf("other%d", i), fmt.Sprintf("203.0.113.%d:1", i))
	}
	if got := h.audit(t); len(got) > failuresAtOnce+1 {
		t.Errorf("%d entries of failed sign-ins", len(got))
	}
	whole := 0
	for _, line := range h.audit(t) {
		whole += len(line)
	}
	if whole > 10_000 {
		t.Errorf("%d bytes are in the audit log", whole)
	}
}

// A network of IPv6 counts as one client, and an IPv4 address is the same in both
// ways of writing it.
func TestSignInsAreLimitedByNetwork(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	last := map[string]int{}
	for i := range 40 {
		last["IPv6"] = h.failedSignIn(fmt.Sprintf("six%d", i), fmt.Sprintf("[2001:db8::%x]:1", i))
		mapped := []string{"192.0.2.9:1", "[::ffff:192.0.2.9]:1"}[i%2]
		last["mapped"] = h.failedSignIn(fmt.Sprintf("four%d", i), mapped)
	}
	for kind, status := range last {
		if status != http.StatusTooManyRequests {
			t.Errorf("%s: attempt 40 answers %d", kind, status)
		}
	}
	if status := h.failedSignIn("another", "[2001:db8:0:1::1]:1"); status != http.StatusUnauthorized {
		t.Errorf("another network answers %d", status)
	}
}

// Forms take the fields that are declared, each up to its size.
func TestFormsAreBounded(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.repository(t)
	alice, root := h.visitor(t, "alice"), h.visitor(t, "root")
	long := strings.Repeat("x", 5000)
	for _, c := range []struct {
		who   *visitor
		path  string
		form  url.Values
		wants int
	}{
		{root, "/settings/tokens", url.Values{"name": {long}, "role": {"viewer"}}, http.StatusRequestEntityTooLarge},
		{root, "/settings/people/create", url.Values{"login": {long}, "role": {"viewer"}, "password": {password}}, http.StatusRequestEntityTooLarge},
		{alice, "/board/team/app/issues", url.Values{"title": {long}}, http.StatusRequestEntityTooLarge},
		{alice, "/board/team/app/issues", url.Values{"title": {"x"}, "body": {strings.Repeat("x", maxText+1)}}, http.StatusRequestEntityTooLarge},
		{alice, "/board/team/app/issues", url.Values{"title": {"x"}, "unheard": {"of"}}, http.StatusUnprocessableEntity},
		{alice, "/board/team/app/issues", url.Values{"title": {"x", "y"}}, http.StatusUnprocessableEntity},
		{alice, "/preferences", url.Values{"language": {strings.Repeat("x", 20<<10)}}, http.StatusRequestEntityTooLarge},
		{alice, "/board/team/app/issues", url.Values{"title": {"x"}, "body": {strings.Repeat("x", maxText)}}, http.StatusOK},
	} {
		if status, _ := c.who.post(c.path, c.form); status != c.wants {
			t.Errorf("%s answers %d, want %d", c.path, status, c.wants)
		}
	}
	// What is noted is short, however long the path is.
	alice.post("/tasks/"+strings.Repeat("x", 20_000)+"/stop", nil)
	entries, err := h.store.ListAudit(t.Context(), "", 0)
	must(t, err)
	for _, e := range entries {
		if size := len(e.Actor) + len(e.Subject); size > 1000 {
			t.Errorf("an entry %s has %d bytes", e.Action, size)
		}
	}
}

// Every field that a form of a page has is declared.
func TestEveryFieldOfAFormIsDeclared(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.templ")
	must(t, err)
	field := regexp.MustCompile(`<(?:input|textarea|select|button)\b[^>]*\bname="([a-z_]+)"`)
	// Those of forms with GET, and of the one that goes to GitHub.
	inQuery := map[string]bool{"q": true, "repository": true, "state": true, "type": true, "manifest": true, "days": true}
	found := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		must(t, err)
		for _, match := range field.FindAllStringSubmatch(string(text), -1) {
			found++
			if _, declared := formFields[match[1]]; !declared && !inQuery[match[1]] {
				t.Errorf("%s has the field %s, which formFields has not", file, match[1])
			}
		}
	}
	if found < 20 {
		t.Errorf("%d fields were found", found)
	}
}
