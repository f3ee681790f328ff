package cloud

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toryo-dev/toryo/internal/llm"
)

// answers plays the servers that give tokens, and keeps what they were asked.
type answers struct {
	say func(r *http.Request, body string) (status int, answer string)

	mu    sync.Mutex
	asked []string // method, address and body
}

func (a *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	body := ""
	if r.Body != nil {
		read, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		body = string(read)
	}
	a.mu.Lock()
	a.asked = append(a.asked, strings.TrimSpace(r.Method+" "+r.URL.String()+" "+body))
	a.mu.Unlock()
	status, answer := a.say(r, body)
	header := http.Header{}
	if status/100 == 3 {
		header.Set("Location", "https://elsewhere.example/")
	}
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader(answer)), Request: r}, nil
}

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "credentials")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// shown is what a request shows of who asks.
func shown(t *testing.T, made authorize, err error) (http.Header, error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://models.example/x", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	return request.Header, made(t.Context(), request, nil)
}

const amazonJSON = `{"Code":"Success","AccessKeyId":"AKID","SecretAccessKey":"secret","Token":"session","Expiration":"2999-01-01T00:00:00Z"}`

func TestCredentialsOfAmazon(t *testing.T) {
	t.Parallel()
	shared := file(t, "# comment\n[default]\naws_access_key_id = OTHER\naws_secret_access_key=x\n\n[profile models]\nAWS_ACCESS_KEY_ID = AKID\naws_secret_access_key = sec=ret\naws_session_token=session\n")
	token := file(t, "the-token-of-the-pod\n")
	for name, test := range map[string]struct {
		place     Place
		variables map[string]string
		asked     []string
		id        string
		wrong     string
	}{
		"variables":           {Place{Credentials: "environment"}, map[string]string{"AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "s"}, nil, "AKID", ""},
		"no variables":        {Place{Credentials: "environment"}, nil, nil, "", "the variable AWS_ACCESS_KEY_ID is not set"},
		"file":                {Place{Credentials: "file", CredentialsFile: shared, Profile: "models"}, nil, nil, "AKID", ""},
		"file, no home":       {Place{Credentials: "file"}, nil, nil, "", "no home folder is known"},
		"file, relative home": {Place{Credentials: "file"}, map[string]string{"HOME": "."}, nil, "", "no home folder is known"},
		"file, variable":      {Place{Credentials: "file"}, map[string]string{"AWS_SHARED_CREDENTIALS_FILE": shared, "AWS_PROFILE": "models"}, nil, "AKID", ""},
		"default":             {Place{Credentials: "file", CredentialsFile: shared}, nil, nil, "OTHER", ""},
		"no profile":          {Place{Credentials: "file", CredentialsFile: shared, Profile: "none"}, nil, nil, "", `the profile "none"`},
		"no file":             {Place{Credentials: "file", CredentialsFile: "/nonexistent"}, nil, nil, "", "no such file"},
		"machine": {Place{Credentials: "metadata"}, nil, []string{
			"PUT http://169.254.169.254/latest/api/token",
			"GET http://169.254.169.254/latest/meta-data/iam/security-credentials/",
			"GET http://169.254.169.254/latest/meta-data/iam/security-credentials/my-role",
		}, "AKID", ""},
		"container": {Place{Credentials: "metadata"}, map[string]string{"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "/v2/credentials/1"}, []string{"GET http://169.254.170.2/v2/credentials/1"}, "AKID", ""},
		"pod": {Place{Credentials: "metadata"}, map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://169.254.170.23/v1/credentials", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": token},
			[]string{"GET http://169.254.170.23/v1/credentials"}, "AKID", ""},
		"another server": {Place{Credentials: "metadata"}, map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://evil.example/v1/credentials"}, nil, "", "has to be https"},
		"role of a pod": {Place{Credentials: "workload", Region: "eu-central-1"}, map[string]string{"AWS_ROLE_ARN": "arn:aws:iam::1:role/r", "AWS_WEB_IDENTITY_TOKEN_FILE": token}, []string{
			"POST https://sts.eu-central-1.amazonaws.com/ Action=AssumeRoleWithWebIdentity&RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fr&RoleSessionName=toryo&Version=2011-06-15&WebIdentityToken=the-token-of-the-pod",
		}, "AKID", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers := &answers{say: func(r *http.Request, _ string) (int, string) {
				switch {
				case r.Method == http.MethodPut:
					return 200, "machine-token"
				case strings.HasSuffix(r.URL.Path, "security-credentials/"):
					return 200, "my-role\n"
				case r.Method == http.MethodPost:
					return 200, `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>AKID</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>session</SessionToken><Expiration>2999-01-01T00:00:00Z</Expiration></Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`
				case strings.Contains(r.URL.Path, "my-role") && r.Header.Get("X-Aws-Ec2-Metadata-Token") != "machine-token",
					r.URL.Host == "169.254.170.23" && r.Header.Get("Authorization") != "the-token-of-the-pod":
					return 401, "no token"
				}
				return 200, amazonJSON
			}}
			test.place.Transport, test.place.Variable = servers, func(name string) string { return test.variables[name] }
			made, err := test.place.amazon("")
			header, err := shown(t, made, err)
			if test.wrong != "" {
				var lacking *refusedError
				if err == nil || !strings.Contains(err.Error(), test.wrong) || !errors.As(err, &lacking) || len(servers.asked) > 0 {
					t.Errorf("%v, want %q", err, test.wrong)
				}
				return
			}
			if err != nil || !strings.Contains(header.Get("Authorization"), "Credential="+test.id+"/") {
				t.Errorf("%v, %v", header, err)
			}
			if fmt.Sprint(servers.asked) != fmt.Sprint(test.asked) {
				t.Errorf("asked were\n%s\nwant\n%s", strings.Join(servers.asked, "\n"), strings.Join(test.asked, "\n"))
			}
		})
	}
}

// A service account asks with a token that it has signed; Google's own address is asked, whatever
// the file says.
func TestServiceAccount(t *testing.T) {
	t.Parallel()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(map[string]string{
		"type": "service_account", "client_email": "agent@project.iam.example", "private_key_id": "key-1",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})), "token_uri": "https://evil.example/token",
	})
	if err != nil {
		t.Fatal(err)
	}
	servers := &answers{say: func(r *http.Request, body string) (int, string) {
		form, err := url.ParseQuery(body)
		parts := strings.Split(form.Get("assertion"), ".")
		if err != nil || r.URL.String() != "https://oauth2.googleapis.com/token" || len(parts) != 3 {
			return 400, "bad request"
		}
		signature, err := base64.RawURLEncoding.DecodeString(parts[2])
		sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
		if err != nil || rsa.VerifyPKCS1v15(&key.PublicKey, crypto.SHA256, sum[:], signature) != nil {
			return 401, "bad signature"
		}
		var claims struct {
			Iss, Aud, Scope string
			Iat, Exp        int64
		}
		data, err := base64.RawURLEncoding.DecodeString(parts[1])
		if err != nil || json.Unmarshal(data, &claims) != nil || claims.Iss != "agent@project.iam.example" || claims.Aud != "https://oauth2.googleapis.com/token" ||
			claims.Scope != "https://www.googleapis.com/auth/cloud-platform" || claims.Exp-claims.Iat != 3600 {
			return 400, "bad claims"
		}
		return 200, `{"access_token":"ya29.token","expires_in":3599,"token_type":"Bearer"}`
	}}
	place := Place{Credentials: "file", Transport: servers, Variable: func(name string) string {
		return map[string]string{"GOOGLE_APPLICATION_CREDENTIALS": file(t, string(text))}[name]
	}}
	made, err := place.google("")
	for range 3 { // one token for all
		header, err := shown(t, made, err)
		if err != nil || header.Get("Authorization") != "Bearer ya29.token" {
			t.Fatalf("%v, %v", header, err)
		}
	}
	if len(servers.asked) != 1 {
		t.Errorf("%d requests for a token", len(servers.asked))
	}
	for content, want := range map[string]string{
		`{"type":"external_account"}`: "not supported", `{"type":"service_account","private_key":"x"}`: "the private key cannot be read", `[]`: "not a file with credentials", ``: "is empty",
	} {
		made, err := Place{Credentials: "file", CredentialsFile: file(t, content), Transport: servers}.google("")
		if _, err := shown(t, made, err); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", content, err, want)
		}
	}
}

func TestTokensOfMachinesAndPods(t *testing.T) {
	t.Parallel()
	token := file(t, "the-token-of-the-pod")
	entra := map[string]string{"AZURE_TENANT_ID": "tenant", "AZURE_CLIENT_ID": "client", "AZURE_CLIENT_SECRET": "secret-of-client", "AZURE_FEDERATED_TOKEN_FILE": token}
	for name, test := range map[string]struct {
		show  func(Place) (authorize, error)
		place Place
		asked string
	}{
		"vertex": {func(p Place) (authorize, error) { return p.google("") }, Place{Credentials: "metadata"},
			"GET http://metadata.google.internal/computeMetadata/v1/instance/service-accounts/default/token"},
		"azure machine": {func(p Place) (authorize, error) { return p.microsoft("") }, Place{Credentials: "metadata"},
			"GET http://169.254.169.254/metadata/identity/oauth2/token?api-version=2018-02-01&client_id=client&resource=https%3A%2F%2Fcognitiveservices.azure.com"},
		"azure client": {func(p Place) (authorize, error) { return p.microsoft("") }, Place{Credentials: "environment"},
			"POST https://login.microsoftonline.com/tenant/oauth2/v2.0/token client_id=client&client_secret=secret-of-client&grant_type=client_credentials&scope=https%3A%2F%2Fcognitiveservices.azure.com%2F.default"},
		"azure pod": {func(p Place) (authorize, error) { return p.microsoft("") }, Place{Credentials: "workload"},
			"POST https://login.microsoftonline.com/tenant/oauth2/v2.0/token client_assertion=the-token-of-the-pod&client_assertion_type=urn%3Aietf%3Aparams%3Aoauth%3Aclient-assertion-type%3Ajwt-bearer&client_id=client&grant_type=client_credentials&scope=https%3A%2F%2Fcognitiveservices.azure.com%2F.default"},
	} {
		servers := &answers{say: func(r *http.Request, _ string) (int, string) {
			if r.Method == http.MethodGet && r.Header.Get("Metadata") != "true" && r.Header.Get("Metadata-Flavor") != "Google" {
				return 403, "a header is missing"
			}
			return 200, `{"access_token":"made","expires_in":"3600"}`
		}}
		test.place.Transport, test.place.Variable = servers, func(name string) string { return entra[name] }
		made, err := test.show(test.place)
		header, err := shown(t, made, err)
		if err != nil || header.Get("Authorization") != "Bearer made" || fmt.Sprint(servers.asked) != "["+test.asked+"]" {
			t.Errorf("%s: %v, %v after\n%s\nwant\n%s", name, header, err, servers.asked, test.asked)
		}
	}
}

// What shows who asks does not go elsewhere, and what a server of tokens says is bounded.
func TestServersThatGiveNoToken(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		status int
		answer string
		kind   llm.Kind
		want   string
	}{
		"a redirect":       {307, "", llm.Unauthorized, "(status 307)"},
		"refused":          {401, `{"error":"invalid_client","error_description":"AADSTS7000215: Invalid client secret"}`, llm.Unauthorized, "AADSTS7000215"},
		"down":             {503, "", llm.Unreachable, "(status 503)"},
		"no token":         {200, `{}`, llm.Unauthorized, "has none"},
		"a page":           {200, "<html>", llm.Unauthorized, "has none"},
		"too much of that": {400, strings.Repeat("x", 4<<20), llm.Unauthorized, "…"},
	} {
		servers := &answers{say: func(*http.Request, string) (int, string) { return test.status, test.answer }}
		place := Place{Credentials: "environment", Transport: servers, Variable: func(name string) string { return "value-of-" + name }}
		made, err := place.microsoft("")
		_, err = shown(t, made, err)
		lacking := &credentialError{err}
		if err == nil || !strings.Contains(err.Error(), test.want) || lacking.kind() != test.kind || len(err.Error()) > 1000 || len(servers.asked) != 1 {
			t.Errorf("%s: %v, kind %s after %q", name, err, lacking.kind(), servers.asked)
		}
		if strings.Contains(fmt.Sprint(err), "value-of-AZURE_CLIENT_SECRET") {
			t.Errorf("%s: the secret is in the error: %v", name, err)
		}
	}
}

// A token is fetched once for calls at the same time, and again before it ends.
func TestTokensAreKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fetched := 0
		var fails error
		source := keep(func(context.Context) (string, time.Time, error) {
			fetched++
			<-time.After(time.Second) // the time of a synctest bubble
			return fmt.Sprint("token-", fetched), time.Now().Add(time.Hour), fails
		})
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				if got, err := source.get(t.Context()); got != "token-1" || err != nil {
					t.Errorf("%q, %v", got, err)
				}
			})
		}
		all.Wait()
		<-time.After(56 * time.Minute) // the time of a synctest bubble
		if got, err := source.get(t.Context()); got != "token-2" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
		fails = errors.New("down")
		<-time.After(56 * time.Minute) // the time of a synctest bubble
		if got, err := source.get(t.Context()); got != "token-2" || err != nil {
			t.Errorf("%q, %v, want the token that still holds", got, err)
		}
		<-time.After(5 * time.Minute) // the time of a synctest bubble
		if got, err := source.get(t.Context()); err == nil {
			t.Errorf("%q after its end", got)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		source.turn <- struct{}{} // somebody fetches
		if _, err := source.get(ended); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	})
}
