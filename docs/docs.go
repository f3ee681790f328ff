// Package docs holds the documentation: the Markdown files of this folder, and their
// translations in folders that are named by their language. Package docsite makes
// pages of them, which the server shows.
package docs

import "embed"

// Files are the pages. Decisions are for those who change the program: they are not among
// them.
//
//go:embed *.md ja/*.md images/*.webp
var Files embed.FS
