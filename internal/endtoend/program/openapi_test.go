package program

import (
	"io"
	"net/http"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// The document about the API is valid, and has what agents use.
func TestOpenAPIDescribesWhatAgentsUse(t *testing.T) {
	t.Parallel()
	here := newPlace(t, "sqlite")
	server := here.start(t, "serve")
	defer server.stop(t)
	for _, path := range []string{"/openapi.json", "/openapi-3.0.json"} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := new(http.Client).Do(request)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("%s answers %s, %v", path, answer.Status, err)
		}
		document, err := openapi3.NewLoader().LoadFromData(text)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if err := document.Validate(t.Context(), openapi3.DisableExamplesValidation()); err != nil {
			t.Errorf("%s is not valid: %v", path, err)
		}
		for operation, method := range map[string]string{
			"/v1/tasks/request": http.MethodPost, "/v1/agents/enrol": http.MethodPost, "/v1/agents": http.MethodGet, "/v1/agents/{id}": http.MethodDelete,
			"/v1/tasks/{id}/heartbeat": http.MethodPost, "/v1/tasks/{id}/events": http.MethodPost, "/v1/tasks/{id}/journal": http.MethodGet,
			"/v1/tasks/{id}/signals": http.MethodGet, "/v1/tasks/{id}/references": http.MethodGet, "/v1/tasks/{id}/progress": http.MethodPost, "/v1/tasks/{id}/comments": http.MethodPost,
			"/v1/tasks/{id}/pull": http.MethodPost, "/v1/tasks/{id}/result": http.MethodPost, "/v1/tasks/{id}/spend": http.MethodPut,
		} {
			found := document.Paths.Find(operation)
			if found == nil || found.GetOperation(method) == nil || found.GetOperation(method).Security == nil {
				t.Errorf("%s: %s %s is not described", path, method, operation)
			}
		}
	}
}
