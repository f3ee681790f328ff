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
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	googleScope   = "https://www.googleapis.com/auth/cloud-platform"
	googleToken   = "https://oauth2.googleapis.com/token"
	googleMachine = "http://metadata.google.internal/computeMetadata/v1/instance/service-accounts/default/token"
)

// google is how a request to Vertex shows who asks.
func (p Place) google(key string) (authorize, error) {
	switch {
	case p.isKey() && key == "":
		return nil, missing("vertex needs an access token as key or llm.credentials")
	case p.isKey():
		return bearer(static(key)), nil
	case p.Credentials == "token_file":
		return p.fromFile(), nil
	case p.Credentials == "file":
		return bearer(keep(p.tokenOfGoogleFile).get), nil
	case p.Credentials == "metadata":
		return bearer(keep(p.tokenOfGoogleMachine).get), nil
	}
	return nil, p.unknownCredentials("vertex")
}

// googleFile is the key of a service account, or what gcloud keeps of a person.
type googleFile struct {
	Type         string `json:"type"`
	ClientEmail  string `json:"client_email"`
	PrivateKeyID string `json:"private_key_id"`
	PrivateKey   string `json:"private_key"`
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret"`
	RefreshToken string `json:"refresh_token"`
}

// tokenOfGoogleFile asks for a token with what the file has. It is asked of Google itself, whatever
// address the file names.
func (p Place) tokenOfGoogleFile(ctx context.Context) (string, time.Time, error) {
	path := p.CredentialsFile
	if path == "" {
		path = p.optional("GOOGLE_APPLICATION_CREDENTIALS")
	}
	if path == "" {
		return "", time.Time{}, refused(errors.New("neither llm.credentials_file nor GOOGLE_APPLICATION_CREDENTIALS is set"))
	}
	text, err := readFile(path)
	if err != nil {
		return "", time.Time{}, err
	}
	var file googleFile
	if err := json.Unmarshal([]byte(text), &file); err != nil {
		return "", time.Time{}, refused(fmt.Errorf("%s is not a file with credentials of Google", path))
	}
	switch file.Type {
	case "service_account":
		assertion, err := file.assertion(time.Now())
		if err != nil {
			return "", time.Time{}, refused(fmt.Errorf("%s: %w", path, err))
		}
		return p.postForm(ctx, googleToken, url.Values{"grant_type": {"urn:ietf:params:oauth:grant-type:jwt-bearer"}, "assertion": {assertion}})
	case "authorized_user":
		return p.postForm(ctx, googleToken, url.Values{
			"grant_type": {"refresh_token"}, "client_id": {file.ClientID}, "client_secret": {file.ClientSecret}, "refresh_token": {file.RefreshToken},
		})
	}
	return "", time.Time{}, refused(fmt.Errorf("%s: credentials of the type %q are not supported, only service_account and authorized_user are", path, file.Type))
}

// assertion is a JSON Web Token by which a service account asks for an access token.
func (f googleFile) assertion(at time.Time) (string, error) {
	block, _ := pem.Decode([]byte(f.PrivateKey))
	if block == nil {
		return "", errors.New("the private key cannot be read")
	}
	var key *rsa.PrivateKey
	if parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
		key, _ = parsed.(*rsa.PrivateKey)
	} else if key, err = x509.ParsePKCS1PrivateKey(block.Bytes); err != nil {
		return "", errors.New("the private key cannot be read")
	}
	if key == nil {
		return "", errors.New("the private key is not one of RSA")
	}
	parts := make([]string, 0, 3)
	for _, part := range []any{
		map[string]string{"alg": "RS256", "typ": "JWT", "kid": f.PrivateKeyID},
		map[string]any{"iss": f.ClientEmail, "scope": googleScope, "aud": googleToken, "iat": at.Unix(), "exp": at.Add(time.Hour).Unix()},
	} {
		text, err := json.Marshal(part)
		if err != nil {
			return "", err
		}
		parts = append(parts, base64.RawURLEncoding.EncodeToString(text))
	}
	sum := sha256.Sum256([]byte(strings.Join(parts, ".")))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	if err != nil {
		return "", err
	}
	return strings.Join(append(parts, base64.RawURLEncoding.EncodeToString(signature)), "."), nil
}

func (p Place) tokenOfGoogleMachine(ctx context.Context) (string, time.Time, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, googleMachine, http.NoBody)
	if err != nil {
		return "", time.Time{}, refused(err)
	}
	request.Header.Set("Metadata-Flavor", "Google")
	body, err := ask(p.client(true), request)
	if err != nil {
		return "", time.Time{}, err
	}
	return readToken(body)
}
