package telemetry_test

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/toryo-dev/toryo/internal/app/telemetry"
	"github.com/toryo-dev/toryo/internal/redact"
)

func TestLogsMaskSecrets(t *testing.T) {
	t.Parallel()
	for _, asJSON := range []bool{false, true} {
		var out bytes.Buffer
		started, err := telemetry.Start(t.Context(), telemetry.Options{
			LogTo: &out, LogLevel: slog.LevelInfo, LogJSON: asJSON, Redactor: redact.New("hunter2hunter2"),
		})
		if err != nil {
			t.Fatal(err)
		}
		started.Log.Info("the key is hunter2hunter2", "url", "http://x/?key=hunter2hunter2")
		started.Log.Debug("too small to be written")
		if said := out.String(); strings.Contains(said, "hunter2") || strings.Count(said, redact.Mask) != 2 || strings.Contains(said, "too small") {
			t.Errorf("the log is %s", said)
		}
		if strings.HasPrefix(out.String(), "{") != asJSON {
			t.Errorf("the format is wrong: %s", out.String())
		}
	}
}

func TestMetricsNameTheBuild(t *testing.T) {
	t.Parallel()
	started, err := telemetry.Start(t.Context(), telemetry.Options{LogTo: io.Discard, Version: "v1.2.3", Redactor: redact.New()})
	if err != nil {
		t.Fatal(err)
	}
	answer := httptest.NewRecorder()
	promhttp.HandlerFor(started.Metrics, promhttp.HandlerOpts{}).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for _, want := range []string{`toryo_build_info{version="v1.2.3"} 1`, "go_goroutines", "process_resident_memory_bytes"} {
		if !strings.Contains(answer.Body.String(), want) {
			t.Errorf("%s is not in the metrics", want)
		}
	}
}
