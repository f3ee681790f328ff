package web

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/a-h/templ"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/memory"
	"github.com/toryo-dev/toryo/internal/statistics"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
)

const (
	memoryPath = "/settings/memory"
	// repositoryField and noteField are what the list is narrowed to: a repository with its forge, or
	// the ids of notes.
	repositoryField = "repository"
	noteField       = "note"
	// mostLinked is how many notes of a journal entry are linked.
	mostLinked = 10
)

// notePath is the address of a note.
func notePath(id string) string { return memoryPath + "?" + url.Values{noteField: {id}}.Encode() }

func (p *Pages) registerMemory(mux *http.ServeMux) {
	notes := memory.Editor{Store: p.Store, Mask: p.Settings.Mask}
	mux.HandleFunc("GET "+memoryPath, p.page(access.Viewer, p.showMemory))
	on := func(path, name string, do func(r *http.Request, v visit) error, noted ...string) {
		mux.HandleFunc("POST "+memoryPath+path, p.act(action{name: name, role: access.Operator, noted: noted, do: func(r *http.Request, v visit) (string, error) {
			return safeNext(r.PostFormValue("next")), do(r, v)
		}}))
	}
	on("/add", "memory.add", func(r *http.Request, v visit) error {
		_, err := notes.Write(r.Context(), r.PostFormValue("repository"), r.PostFormValue("text"), r.PostFormValue("path"), v.user.Login, p.Now())
		return err
	}, "repository")
	on("/edit", "memory.edit", func(r *http.Request, v visit) error {
		_, err := notes.Edit(r.Context(), r.PostFormValue("id"), r.PostFormValue("text"), v.user.Login, p.Now())
		return err
	}, "id")
	on("/forget", "memory.forget", func(r *http.Request, _ visit) error { return p.Store.ForgetNote(r.Context(), r.PostFormValue("id")) }, "id")
}

// memoryView is a page of notes.
type memoryView struct {
	listing
	on           bool         // notes are kept and given
	notes        []store.Note // of the page
	repositories []string     // that can be chosen
	links        []store.SavedLink
	older        string // the address of the older ones; "" if there are none
}

// memoryColumns are what the notes can be put in order by.
var memoryColumns = columns[store.Note]{
	"repository": byText(func(note store.Note) string { return note.Repository.String() }),
	"author":     byText(func(note store.Note) string { return note.Author }),
	"last":       byTime(func(note store.Note) timeOf { return note.AskedAt }),
}

// memoryOrders are the orders that the list offers.
var memoryOrders = []string{"-last", "repository", "author"}

func (p *Pages) showMemory(r *http.Request, v visit) (templ.Component, error) {
	ctx := r.Context()
	view := memoryView{listing: readListing(r, repositoryField, noteField, beforeName), on: p.Settings.Memory}
	filter := store.NoteFilter{Before: searched(view.get(beforeName)), Limit: mostListed}
	if id := searched(view.get(noteField)); id != "" {
		filter.IDs = []string{id}
	}
	if name := searched(view.get(repositoryField)); name != "" {
		of, err := memory.ParseRepository(name)
		if err != nil {
			return nil, err
		}
		filter.Forge, filter.Repository = of.Forge, of.Name
	}
	found, err := p.Store.ListNotes(ctx, filter)
	if err != nil {
		return nil, err
	}
	if len(found) == mostListed {
		view.older = view.with(beforeName, found[len(found)-1].ID)
	}
	if err := view.readRepositories(r, p.Store, found); err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(note store.Note) bool {
		return !contains(view.search(), note.Text, note.Path, note.Author, note.EditedBy)
	})
	inOrder(view.listing, found, memoryColumns)
	view.notes = pageOf(&view.listing, found)
	view.links, err = p.linksOf(ctx, v, view.path)
	return memoryPage(v, view), err
}

// readRepositories reads which repositories can be chosen: those with tasks, and those of the notes.
func (view *memoryView) readRepositories(r *http.Request, from statisticsStore, notes []store.Note) error {
	names, err := from.TaskRepositories(r.Context(), listedRepositories)
	if err != nil {
		return err
	}
	for _, name := range names {
		view.repositories = append(view.repositories, statistics.RepositoryName(name))
	}
	for _, note := range notes {
		if name := note.Repository.String(); !slices.Contains(view.repositories, name) {
			view.repositories = append(view.repositories, name)
		}
	}
	slices.Sort(view.repositories)
	return nil
}

// sourceURL is the address of the pull request that a note comes from, if a browser can open it.
func sourceURL(note store.Note) string {
	if strings.HasPrefix(note.URL, "https://") || strings.HasPrefix(note.URL, "http://") {
		return note.URL
	}
	return ""
}

// sourceName is what the pull request is called.
func sourceName(note store.Note) string {
	return task.Key{Forge: note.Repository.Forge, Repository: note.Repository.Name, Kind: task.Pull, Number: note.Pull}.String()
}
