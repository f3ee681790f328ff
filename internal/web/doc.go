// Package web holds the pages for people: templates, assets and what they show.
//
// Nothing stands here yet but its place in the import table.
package web
