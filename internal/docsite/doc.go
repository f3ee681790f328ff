// Package docsite makes pages of the Markdown files in the folder docs: rendered, in
// the order of docs/README.md, in the language of the reader where there is a translation,
// and with an index of their words.
//
// A link from one file to another becomes a link from page to page, so that the same files
// are read on a forge, in an editor and on the server. A translation has the headings of the
// English page in the same order and takes over their anchors: a link to a heading is good in
// every language.
package docsite
