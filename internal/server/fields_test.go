package server

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/toryo-dev/toryo/internal/review"
)

// Everything that someone sends to the API has a size that is declared with it:
// whatever is added later, too.
func TestEveryFieldIsBounded(t *testing.T) {
	t.Parallel()
	h := newBoardHouse(t).house
	h.server.registerReviews(review.New(review.Options{Store: h.store, Now: time.Now, Log: h.server.log}))
	boundFields(h.server.api.OpenAPI())
	w := onSQLite(t)
	for _, document := range []*huma.OpenAPI{h.server.api.OpenAPI(), w.server.api.OpenAPI()} {
		for path, item := range document.Paths {
			for _, operation := range []*huma.Operation{item.Get, item.Post, item.Put, item.Patch, item.Delete} {
				if operation == nil {
					continue
				}
				look := bounds{t: t, registry: document.Components.Schemas}
				for _, parameter := range operation.Parameters {
					look.at(operation.Method+" "+path+" "+parameter.Name, parameter.Schema)
				}
				if operation.RequestBody == nil {
					continue
				}
				for _, media := range operation.RequestBody.Content {
					look.at(operation.Method+" "+path, media.Schema)
				}
			}
		}
	}
}

type bounds struct {
	t        *testing.T
	registry huma.Registry
	inside   []string
}

func (b bounds) at(where string, schema *huma.Schema) {
	if schema.Ref != "" {
		if slices.Contains(b.inside, schema.Ref) {
			return
		}
		b.inside = append(slices.Clone(b.inside), schema.Ref)
		schema = b.registry.SchemaFromRef(schema.Ref)
	}
	bounded := schema.MaxLength != nil || len(schema.Enum) > 0 || strings.HasPrefix(schema.Format, "date")
	switch {
	case schema.Type == huma.TypeString && !bounded:
		b.t.Errorf("%s: a text of any length", where)
	case schema.Type == huma.TypeArray && schema.MaxItems == nil:
		b.t.Errorf("%s: a list of any length", where)
	}
	if schema.Items != nil {
		b.at(where+"[]", schema.Items)
	}
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		if name != "$schema" {
			b.at(where+"."+name, schema.Properties[name])
		}
	}
	if further, is := schema.AdditionalProperties.(*huma.Schema); is {
		b.at(where+".*", further)
	}
}
