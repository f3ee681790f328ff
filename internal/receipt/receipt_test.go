package receipt_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"

	"github.com/toryo-dev/toryo/internal/receipt"
	"github.com/toryo-dev/toryo/internal/task"
)

const (
	commit = "0123456789abcdef0123456789abcdef01234567"
	base   = "89abcdef0123456789abcdef0123456789abcdef"
	image  = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
)

func must[T any](t *testing.T) func(T, error) T {
	t.Helper()
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func facts() receipt.Facts {
	return receipt.Facts{
		Repository: "github:acme/app", Commit: commit, Tree: base, Base: base, BaseBranch: "main", Item: "github:acme/app#7", Task: "t1", Generation: 2,
		SignedAt: time.Date(2026, 5, 6, 7, 8, 9, 10, time.FixedZone("", 3600)), Run: "https://toryo.example.com/tasks/t1",
	}
}

func verdict() receipt.Verdict {
	return receipt.Verdict{
		Passed:      true,
		Environment: receipt.Environment{Name: "go", Ready: true, Sandbox: "docker", Image: "golang:1", Identity: image, SetupCommands: []string{"go mod download"}},
		Projects: []receipt.Project{{Folder: ".", Runs: []receipt.Run{
			{Kind: receipt.BuildRun, Command: "go build ./...", Compared: true}, {Kind: receipt.TestRun, Command: "go test ./...", Compared: true},
		}}},
	}
}

// signed is a key with a receipt that it signed.
func signed(t *testing.T) (receipt.PrivateKey, []byte) {
	t.Helper()
	key := must[receipt.PrivateKey](t)(receipt.NewKey())
	statement := must[receipt.Statement](t)(receipt.New(facts(), verdict()))
	return key, must[[]byte](t)(receipt.Sign(t.Context(), key, statement))
}

func TestWhatIsSignedIsVerified(t *testing.T) {
	t.Parallel()
	key, envelope := signed(t)
	verified := must[receipt.Verified](t)(receipt.Verify(t.Context(), envelope, key.PublicKey))
	want := must[receipt.Statement](t)(receipt.New(facts(), verdict()))
	want.Predicate.Toryo.Run = "" // it is the url of the predicate
	if diff := cmp.Diff(want, verified.Statement); diff != "" {
		t.Error(diff)
	}
	if verified.Key != key.ID() || verified.Statement.Commit() != commit {
		t.Errorf("it is by %s, about %s", verified.Key, verified.Statement.Commit())
	}
	if at := verified.Statement.Predicate.Toryo.SignedAt; at.Format(time.RFC3339Nano) != "2026-05-06T06:08:09Z" {
		t.Errorf("it was signed at %s", at)
	}
}

// The signature is over the pre-authentication encoding that the specification of DSSE
// describes, put together here by hand, and the specification's own example is encoded
// as it says.
func TestSignaturesAreDSSEs(t *testing.T) {
	t.Parallel()
	if got, want := string(dsse.PAE("http://example.com/HelloWorld", []byte("hello world"))), "DSSEv1 29 http://example.com/HelloWorld 11 hello world"; got != want {
		t.Errorf("the example is encoded as %q, want %q", got, want)
	}
	key, data := signed(t)
	var envelope struct {
		PayloadType string `json:"payloadType"`
		Payload     string `json:"payload"`
		Signatures  []struct {
			KeyID string `json:"keyid"`
			Sig   string `json:"sig"`
		} `json:"signatures"`
	}
	if err := json.Unmarshal(data, &envelope); err != nil {
		t.Fatal(err)
	}
	payload := must[[]byte](t)(base64.StdEncoding.DecodeString(envelope.Payload))
	encoded := fmt.Sprintf("DSSEv1 %d %s %d %s", len(envelope.PayloadType), envelope.PayloadType, len(payload), payload)
	signature := must[[]byte](t)(base64.StdEncoding.DecodeString(envelope.Signatures[0].Sig))
	public, is := key.Public().(ed25519.PublicKey)
	if !is || !ed25519.Verify(public, []byte(encoded), signature) {
		t.Error("the signature is not over the encoding of DSSE")
	}
	if envelope.PayloadType != "application/vnd.in-toto+json" || len(envelope.Signatures) != 1 || envelope.Signatures[0].KeyID != key.ID() {
		t.Errorf("the envelope is %s", data)
	}
}

// keyless is a verifier of the library's users, which knows a key and no id of ours.
type keyless struct{ receipt.PublicKey }

func (keyless) KeyID() (string, error) { return "", errors.New("there is none") }

// The library's own verifier accepts an envelope of ours.
func TestOthersVerify(t *testing.T) {
	t.Parallel()
	key, data := signed(t)
	var envelope dsse.Envelope
	if err := json.Unmarshal(data, &envelope); err != nil {
		t.Fatal(err)
	}
	if accepted, err := must[*dsse.EnvelopeVerifier](t)(dsse.NewEnvelopeVerifier(key.PublicKey)).Verify(t.Context(), &envelope); err != nil || len(accepted) != 1 {
		t.Errorf("with the id: %v, %v", accepted, err)
	}
	envelope.Signatures[0].KeyID = "" // the id is a hint only
	if accepted, err := must[*dsse.EnvelopeVerifier](t)(dsse.NewEnvelopeVerifier(keyless{key.PublicKey})).Verify(t.Context(), &envelope); err != nil || len(accepted) != 1 {
		t.Errorf("without the id: %v, %v", accepted, err)
	}
}

// The statement has the fields that in-toto's specifications name.
func TestStatementIsInTotos(t *testing.T) {
	t.Parallel()
	data, err := json.Marshal(must[receipt.Statement](t)(receipt.New(facts(), verdict())))
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	encoded := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	predicate, is := got["predicate"].(map[string]any)
	if !is {
		t.Fatalf("it is %s", data)
	}
	delete(predicate, "toryo")
	command := func(name, text string) any {
		return map[string]any{"name": name, "content": encoded(text), "mediaType": "text/x-shellscript"}
	}
	want := map[string]any{
		"_type":         "https://in-toto.io/Statement/v1",
		"subject":       []any{map[string]any{"name": "github:acme/app", "digest": map[string]any{"gitCommit": commit}}},
		"predicateType": "https://in-toto.io/attestation/test-result/v0.1",
		"predicate": map[string]any{
			"result": "PASSED", "url": "https://toryo.example.com/tasks/t1",
			"configuration": []any{
				map[string]any{"name": "base", "digest": map[string]any{"gitCommit": base}},
				map[string]any{"name": "environment", "digest": map[string]any{"sha256": image[len("sha256:"):]}},
				command("set-up", "go mod download"), command("build of .", "go build ./..."), command("tests of .", "go test ./..."),
			},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestResults(t *testing.T) {
	t.Parallel()
	tests := func(change func(*receipt.Run)) func(*receipt.Facts, *receipt.Verdict) {
		return func(_ *receipt.Facts, v *receipt.Verdict) { change(&v.Projects[0].Runs[1]) }
	}
	for name, test := range map[string]struct {
		change func(*receipt.Facts, *receipt.Verdict)
		want   string
	}{
		"all passed":         {func(*receipt.Facts, *receipt.Verdict) {}, receipt.Passed},
		"did not pass":       {func(_ *receipt.Facts, v *receipt.Verdict) { v.Passed = false }, receipt.Failed},
		"failed before too":  {tests(func(r *receipt.Run) { r.ExitCode, r.FailedBefore = 1, []string{"TestOld"} }), receipt.Warned},
		"flaky":              {tests(func(r *receipt.Run) { r.Flaky = []string{"TestSometimes"} }), receipt.Warned},
		"names without exit": {tests(func(r *receipt.Run) { r.Failed = []string{"TestNew"} }), receipt.Warned},
		"nothing ran":        {func(_ *receipt.Facts, v *receipt.Verdict) { v.Projects, v.NotRun = nil, "no tests" }, receipt.Warned},
		"only a build":       {func(_ *receipt.Facts, v *receipt.Verdict) { v.Projects[0].Runs = v.Projects[0].Runs[:1] }, receipt.Warned},
		"not ready":          {func(_ *receipt.Facts, v *receipt.Verdict) { v.Environment.Ready = false }, receipt.Warned},
		"not asked for":      {func(f *receipt.Facts, _ *receipt.Verdict) { f.Draft = true }, receipt.Warned},
	} {
		f, v := facts(), verdict()
		test.change(&f, &v)
		statement := must[receipt.Statement](t)(receipt.New(f, v))
		if got := statement.Predicate.Result; got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
		run := receipt.Run{}
		if len(v.Projects) > 0 && len(v.Projects[0].Runs) > 1 {
			run = v.Projects[0].Runs[1]
		}
		if want := append(append([]string(nil), run.Failed...), run.FailedBefore...); !cmp.Equal(statement.Predicate.FailedTests, want) {
			t.Errorf("%s: the tests that fail are %q, want %q", name, statement.Predicate.FailedTests, want)
		}
	}
}

// Every byte of an envelope that is changed makes it another one, or none.
func TestAChangedByteIsNoticed(t *testing.T) {
	t.Parallel()
	key, envelope := signed(t)
	was := must[receipt.Verified](t)(receipt.Verify(t.Context(), envelope, key.PublicKey))
	for i := range envelope {
		changed := append([]byte(nil), envelope...)
		changed[i] ^= 1
		verified, err := receipt.Verify(t.Context(), changed, key.PublicKey)
		if err == nil && !cmp.Equal(verified, was) {
			t.Fatalf("byte %d, %q, can be changed to another meaning", i, envelope[i])
		}
		if _, is := errors.AsType[*receipt.RefusedError](err); err != nil && !is {
			t.Fatalf("byte %d: %v", i, err)
		}
	}
}

func TestWhatIsRefused(t *testing.T) {
	t.Parallel()
	key, good := signed(t)
	other := must[receipt.PrivateKey](t)(receipt.NewKey())
	sign := func(kind string, payload []byte) []byte {
		made, err := must[*dsse.EnvelopeSigner](t)(dsse.NewEnvelopeSigner(key)).SignPayload(t.Context(), kind, payload)
		if err != nil {
			t.Fatal(err)
		}
		return must[[]byte](t)(json.Marshal(made))
	}
	statement := func(change func(*receipt.Statement)) []byte {
		s := must[receipt.Statement](t)(receipt.New(facts(), verdict()))
		change(&s)
		return sign(receipt.PayloadType, must[[]byte](t)(json.Marshal(s)))
	}
	edit := func(change func(*dsse.Envelope)) []byte {
		var envelope dsse.Envelope
		if err := json.Unmarshal(good, &envelope); err != nil {
			t.Fatal(err)
		}
		change(&envelope)
		return must[[]byte](t)(json.Marshal(envelope))
	}
	for name, test := range map[string]struct {
		envelope []byte
		key      receipt.PublicKey
		says     string
	}{
		"another key":              {good, other.PublicKey, "which is not among those given"},
		"another key under its id": {edit(func(e *dsse.Envelope) { e.Signatures[0].KeyID = other.ID() }), other.PublicKey, "one of them was changed"},
		"another payload": {edit(func(e *dsse.Envelope) {
			e.Payload = base64.StdEncoding.EncodeToString([]byte(`{"_type":"` + receipt.StatementType + `"}`))
		}), key.PublicKey, "one of them was changed"},
		"no signature":              {edit(func(e *dsse.Envelope) { e.Signatures = nil }), key.PublicKey, "no signature"},
		"a signature that is none":  {edit(func(e *dsse.Envelope) { e.Signatures[0].Sig = "%" }), key.PublicKey, "one of them was changed"},
		"another payload type":      {sign("text/plain", []byte("{}")), key.PublicKey, `"text/plain"`},
		"the type changed":          {edit(func(e *dsse.Envelope) { e.PayloadType = "application/json" }), key.PublicKey, `"application/json"`},
		"a type that moves cursors": {edit(func(e *dsse.Envelope) { e.PayloadType = "\x1b[2J" }), key.PublicKey, `"\x1b[2J"`},
		"no statement":              {sign(receipt.PayloadType, []byte("[]")), key.PublicKey, "not an in-toto statement"},
		"another statement":         {statement(func(s *receipt.Statement) { s.Type = "https://in-toto.io/Statement/v0.1" }), key.PublicKey, "another type"},
		"another predicate":         {statement(func(s *receipt.Statement) { s.PredicateType = "https://slsa.dev/provenance/v1" }), key.PublicKey, "something else"},
		"no subject":                {statement(func(s *receipt.Statement) { s.Subject = nil }), key.PublicKey, "not about one commit"},
		"two commits":               {statement(func(s *receipt.Statement) { s.Predicate.Toryo.Commit = base }), key.PublicKey, "two commits"},
		"no envelope":               {[]byte("hello"), key.PublicKey, "not a DSSE envelope"},
		"too large":                 {make([]byte, receipt.MaxEnvelope+1), key.PublicKey, "larger than"},
	} {
		_, err := receipt.Verify(t.Context(), test.envelope, test.key)
		if _, is := errors.AsType[*receipt.RefusedError](err); !is || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := receipt.Verify(t.Context(), good); err == nil {
		t.Error("without a key it is verified")
	}
}

// A key comes back as it was kept. Its id is the SHA-256 of its DER.
func TestKeys(t *testing.T) {
	t.Parallel()
	key, envelope := signed(t)
	again := must[receipt.PrivateKey](t)(receipt.ParsePrivate(must[[]byte](t)(key.Encode())))
	old := must[receipt.PrivateKey](t)(receipt.NewKey())
	text := must[[]byte](t)(receipt.PEM(old.PublicKey, again.PublicKey))
	keys := must[[]receipt.PublicKey](t)(receipt.ParsePEM(text))
	if len(keys) != 2 || keys[0].ID() != old.ID() || keys[1].ID() != key.ID() {
		t.Fatalf("the keys are %v", keys)
	}
	if verified := must[receipt.Verified](t)(receipt.Verify(t.Context(), envelope, keys...)); verified.Key != key.ID() {
		t.Errorf("it is by %s", verified.Key)
	}
	block, _ := pem.Decode(text)
	if sum := sha256.Sum256(block.Bytes); hex.EncodeToString(sum[:]) != old.ID() {
		t.Errorf("the id is %s", old.ID())
	}
	private := must[[]byte](t)(key.Encode())
	other := must[[]byte](t)(x509.MarshalPKIXPublicKey(key.Public()))
	for name, text := range map[string][]byte{
		"nothing": nil, "a text": []byte("hello"), "a private key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
		"half a key": pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: other[:20]}),
	} {
		if _, err := receipt.ParsePEM(text); task.CodeOf(err) != task.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What is too much is cut and counted, secrets are taken out before anything is cut, and
// the result always fits.
func TestVerdictsFit(t *testing.T) {
	t.Parallel()
	small := verdict()
	if diff := cmp.Diff(small, small.Fit(nil)); diff != "" {
		t.Error(diff)
	}
	large := verdict()
	names := make([]string, 300)
	for i := range names {
		names[i] = strings.Repeat("n", 995) + "secret" + fmt.Sprint(i) + "\xff"
	}
	run := receipt.Run{Kind: receipt.TestRun, Command: strings.Repeat("c", 5000), Failed: names, FailedBefore: names, Fixed: names, Skipped: names, Flaky: names}
	for range 60 {
		large.Projects = append(large.Projects, receipt.Project{Folder: "x", Runs: []receipt.Run{run}})
	}
	large.Findings, large.Environment.SetupCommands = names, names
	fitted := large.Fit(func(text string) string { return strings.ReplaceAll(text, "secret", "•") })
	if err := fitted.Check(); err != nil {
		t.Error(err)
	}
	data, err := json.Marshal(fitted)
	if err != nil || bytes.Contains(data, []byte("secre")) || fitted.Cut == 0 || len(fitted.Projects) == 0 {
		t.Errorf("%d are cut, %d projects stay", fitted.Cut, len(fitted.Projects))
	}
	if len(large.Findings) != 300 || large.Findings[0] != names[0] {
		t.Error("the verdict itself was changed")
	}
	if err := large.Check(); task.CodeOf(err) != task.TooLarge {
		t.Errorf("one that is too large: %v", err)
	}
	odd := verdict()
	odd.Projects[0].Runs[0].Kind = "lint"
	if _, err := receipt.New(facts(), odd); task.CodeOf(err) != task.Invalid {
		t.Errorf("a kind of run that there is not: %v", err)
	}
	nowhere := facts()
	nowhere.Commit = "main"
	if _, err := receipt.New(nowhere, verdict()); task.CodeOf(err) != task.Invalid {
		t.Errorf("a commit that is none: %v", err)
	}
}
