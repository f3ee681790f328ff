package telemetry_test

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/toryo-dev/toryo/internal/app/telemetry"
	"github.com/toryo-dev/toryo/internal/redact"
	"github.com/toryo-dev/toryo/internal/testkit"
)

func TestLogsMaskSecrets(t *testing.T) {
	t.Parallel()
	for _, asJSON := range []bool{false, true} {
		var out bytes.Buffer
		started, err := telemetry.Start(telemetry.Options{
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
	started, err := telemetry.Start(telemetry.Options{LogTo: io.Discard, Version: "v1.2.3", Redactor: redact.New()})
	if err != nil {
		t.Fatal(err)
	}
	answer := httptest.NewRecorder()
	started.Metrics.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	values := testkit.ParseMetrics(t, answer.Body.String())
	if got := values[`toryo_build_info{version="v1.2.3"}`]; got != 1 {
		t.Errorf("the build is %v in the metrics", got)
	}
	for _, want := range []string{"go_goroutines", "process_resident_memory_bytes"} {
		if values[want] <= 0 {
			t.Errorf("%s is not in the metrics", want)
		}
	}
}
