package server

import (
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// What a field of a request may have unless its tag maxLength or maxItems says
// otherwise: names, paths and commits are short, texts declare how long they may be.
const (
	maxField = 4096 // characters
	maxList  = 1000
)

// boundFields gives every field of every request a bound. It is called when all
// operations are registered, and again when more are.
func boundFields(document *huma.OpenAPI) {
	for _, item := range document.Paths {
		for _, operation := range []*huma.Operation{item.Get, item.Post, item.Put, item.Patch, item.Delete} {
			if operation == nil {
				continue
			}
			bound := bounding{registry: document.Components.Schemas}
			for _, parameter := range operation.Parameters {
				bound.schema(parameter.Schema)
			}
			if operation.RequestBody == nil {
				continue
			}
			for _, media := range operation.RequestBody.Content {
				bound.schema(media.Schema)
			}
		}
	}
}

type bounding struct {
	registry huma.Registry
	inside   []string // the schemas that this one is in
}

func (b bounding) schema(s *huma.Schema) {
	if s == nil {
		return
	}
	if s.Ref != "" {
		if slices.Contains(b.inside, s.Ref) {
			return
		}
		b.inside = append(slices.Clone(b.inside), s.Ref)
		s = b.registry.SchemaFromRef(s.Ref)
	}
	fixed := len(s.Enum) > 0 || strings.HasPrefix(s.Format, "date")
	if s.Type == huma.TypeString && s.MaxLength == nil && !fixed {
		s.MaxLength = new(maxField)
	}
	if s.Type == huma.TypeArray && s.MaxItems == nil {
		s.MaxItems = new(maxList)
	}
	s.PrecomputeMessages()
	b.schema(s.Items)
	for _, property := range s.Properties {
		b.schema(property)
	}
	if further, is := s.AdditionalProperties.(*huma.Schema); is {
		b.schema(further)
	}
}
