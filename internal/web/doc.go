// Package web holds the pages for people: templates, assets, and what they show.
//
// A page is made on the server and works without scripts; a small script makes it
// live. Templates are in files that end in .templ; go generate writes the Go code
// beside them. There is no other build step and nothing is loaded from elsewhere.
//
// How a request goes: [Pages] sets the headers that confine the page, refuses
// writes that another site makes a browser send, finds out who is signed in, and
// then calls the page or the action. A page only reads. An action is written into
// the audit log before it is done, and answers with a redirect to a page.
//
// All text that comes from people, models, repositories or forges is shown as
// text. The one way in which it becomes markup is [markdown], which lets through
// a short list of elements.
package web

//go:generate sh -c "$(../../scripts/tool github.com/a-h/templ/cmd/templ) generate"
