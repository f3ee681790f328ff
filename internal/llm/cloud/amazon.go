package cloud

import (
	"bufio"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// The addresses at which a machine or a container of AWS asks for its own credentials.
const (
	amazonMachine   = "http://169.254.169.254"
	amazonContainer = "http://169.254.170.2"
	// eksContainer and its IPv6 form are where pods ask.
	eksContainer   = "169.254.170.23"
	eksContainerV6 = "fd00:ec2::23"
)

// amazonKeys finds the keys of AWS in the way that is configured.
func (p Place) amazonKeys() (func(context.Context) (keys, error), error) {
	switch p.Credentials {
	case "environment":
		return func(context.Context) (keys, error) { return p.keysOfVariables() }, nil
	case "file":
		return func(context.Context) (keys, error) { return p.keysOfFile() }, nil // read again: programs renew it
	case "workload":
		return keep(p.keysOfWorkload).get, nil
	case "metadata":
		return keep(p.keysOfMetadata).get, nil
	}
	return nil, p.unknownCredentials("bedrock")
}

func (p Place) keysOfVariables() (found keys, err error) {
	if found.ID, err = p.variable("AWS_ACCESS_KEY_ID"); err != nil {
		return keys{}, err
	}
	if found.Secret, err = p.variable("AWS_SECRET_ACCESS_KEY"); err != nil {
		return keys{}, err
	}
	found.Session = p.optional("AWS_SESSION_TOKEN")
	return found, nil
}

// keysOfFile reads the shared credentials file. A profile that leads to another one, or to a
// program, is not supported.
func (p Place) keysOfFile() (keys, error) {
	path, profile := p.CredentialsFile, p.Profile
	if path == "" {
		path = p.optional("AWS_SHARED_CREDENTIALS_FILE")
	}
	if path == "" {
		home := p.optional("HOME")
		if runtime.GOOS == "windows" {
			home = p.optional("USERPROFILE")
		}
		if !filepath.IsAbs(home) { // the folder that this runs in may be of anybody
			return keys{}, refused(errors.New("no home folder is known, so that the shared credentials file is not either; set llm.credentials_file"))
		}
		path = filepath.Join(home, ".aws", "credentials")
	}
	if profile == "" {
		profile = p.optional("AWS_PROFILE")
	}
	if profile == "" {
		profile = "default"
	}
	text, err := readFile(path)
	if err != nil {
		return keys{}, err
	}
	values := profileIn(text, profile)
	found := keys{ID: values["aws_access_key_id"], Secret: values["aws_secret_access_key"], Session: values["aws_session_token"]}
	if found.ID == "" || found.Secret == "" {
		return keys{}, refused(fmt.Errorf("the profile %q in %s has no aws_access_key_id and aws_secret_access_key", profile, path))
	}
	return found, nil
}

// profileIn reads the values of a profile.
func profileIn(text, profile string) map[string]string {
	values, inside := map[string]string{}, false
	lines := bufio.NewScanner(strings.NewReader(text))
	lines.Buffer(nil, largestToken)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		switch {
		case line == "" || strings.HasPrefix(line, "#") || strings.HasPrefix(line, ";"):
		case strings.HasPrefix(line, "["):
			name := strings.TrimSpace(strings.Trim(line, "[]"))
			inside = strings.TrimSpace(strings.TrimPrefix(name, "profile ")) == profile
		case inside:
			name, value, _ := strings.Cut(line, "=")
			values[strings.ToLower(strings.TrimSpace(name))] = strings.TrimSpace(value)
		}
	}
	return values
}

// keysOfWorkload changes the token of a pod for keys of its role.
func (p Place) keysOfWorkload(ctx context.Context) (keys, time.Time, error) {
	role, err := p.variable("AWS_ROLE_ARN")
	if err != nil {
		return keys{}, time.Time{}, err
	}
	file, err := p.variable("AWS_WEB_IDENTITY_TOKEN_FILE")
	if err != nil {
		return keys{}, time.Time{}, err
	}
	token, err := readFile(file)
	if err != nil {
		return keys{}, time.Time{}, err
	}
	session := p.optional("AWS_ROLE_SESSION_NAME")
	if session == "" {
		session = "toryo"
	}
	form := url.Values{
		"Action": {"AssumeRoleWithWebIdentity"}, "Version": {"2011-06-15"},
		"RoleArn": {role}, "RoleSessionName": {session}, "WebIdentityToken": {token},
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://sts."+p.Region+".amazonaws.com/", strings.NewReader(form.Encode()))
	if err != nil {
		return keys{}, time.Time{}, refused(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	body, err := ask(p.client(false), request)
	if err != nil {
		return keys{}, time.Time{}, err
	}
	var answer struct {
		Keys amazonAnswer `xml:"AssumeRoleWithWebIdentityResult>Credentials"`
	}
	if err := xml.Unmarshal(body, &answer); err != nil {
		return keys{}, time.Time{}, refused(fmt.Errorf("read the credentials of the role: %w", err))
	}
	return answer.Keys.keys()
}

// amazonAnswer is how AWS gives keys, in JSON or in XML.
type amazonAnswer struct {
	ID         string    `json:"AccessKeyId" xml:"AccessKeyId"`
	Secret     string    `json:"SecretAccessKey" xml:"SecretAccessKey"`
	Token      string    `json:"Token" xml:"SessionToken"`
	Expiration time.Time `json:"Expiration" xml:"Expiration"`
}

func (a amazonAnswer) keys() (keys, time.Time, error) {
	if a.ID == "" || a.Secret == "" {
		return keys{}, time.Time{}, refused(errors.New("the answer to the request for credentials has none"))
	}
	return keys{ID: a.ID, Secret: a.Secret, Session: a.Token}, a.Expiration, nil
}

// keysOfMetadata asks the container, if there are variables that say so, or else the machine.
func (p Place) keysOfMetadata(ctx context.Context) (keys, time.Time, error) {
	body, err := p.askContainerOrMachine(ctx)
	if err != nil {
		return keys{}, time.Time{}, err
	}
	var answer amazonAnswer
	if err := json.Unmarshal(body, &answer); err != nil {
		return keys{}, time.Time{}, refused(errors.New("the answer to the request for credentials cannot be read"))
	}
	return answer.keys()
}

func (p Place) askContainerOrMachine(ctx context.Context) ([]byte, error) {
	if path := p.optional("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"); path != "" {
		return p.askContainer(ctx, amazonContainer+"/"+strings.TrimPrefix(path, "/"))
	}
	if address := p.optional("AWS_CONTAINER_CREDENTIALS_FULL_URI"); address != "" {
		if err := mayAskContainer(address); err != nil {
			return nil, refused(err)
		}
		return p.askContainer(ctx, address)
	}
	return p.askMachine(ctx)
}

// mayAskContainer holds the address to those that AWS documents: the token of the container goes
// there.
func mayAskContainer(address string) error {
	at, err := url.Parse(address)
	if err != nil {
		return fmt.Errorf("AWS_CONTAINER_CREDENTIALS_FULL_URI: %w", err)
	}
	host := at.Hostname()
	number := net.ParseIP(host)
	own := number != nil && (number.IsLoopback() || host == "169.254.170.2" || host == eksContainer || number.Equal(net.ParseIP(eksContainerV6)))
	if at.Scheme != "https" && (at.Scheme != "http" || !own) {
		return errors.New("AWS_CONTAINER_CREDENTIALS_FULL_URI has to be https, or an address of the container itself")
	}
	return nil
}

func (p Place) askContainer(ctx context.Context, address string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, refused(err)
	}
	token := p.optional("AWS_CONTAINER_AUTHORIZATION_TOKEN")
	if file := p.optional("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"); file != "" {
		if token, err = readFile(file); err != nil {
			return nil, err
		}
	}
	if token != "" {
		request.Header.Set("Authorization", token)
	}
	return ask(p.client(true), request)
}

// askMachine asks by the second version of the metadata service, which wants a token first.
func (p Place) askMachine(ctx context.Context) ([]byte, error) {
	client := p.client(true)
	get := func(method, path, header, value string) (string, error) {
		request, err := http.NewRequestWithContext(ctx, method, amazonMachine+path, http.NoBody)
		if err != nil {
			return "", refused(err)
		}
		request.Header.Set(header, value)
		body, err := ask(client, request)
		return string(body), err
	}
	token, err := get(http.MethodPut, "/latest/api/token", "X-Aws-Ec2-Metadata-Token-Ttl-Seconds", "300")
	if err != nil {
		return nil, err
	}
	const path, header = "/latest/meta-data/iam/security-credentials/", "X-Aws-Ec2-Metadata-Token"
	role, err := get(http.MethodGet, path, header, token)
	if err != nil {
		return nil, err
	}
	role, _, _ = strings.Cut(strings.TrimSpace(role), "\n")
	body, err := get(http.MethodGet, path+url.PathEscape(role), header, token)
	return []byte(body), err
}
