package oidc

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/task"
)

// patience is how long the provider may take for one answer.
const patience = 10 * time.Second

// Options says who the provider is and whom it may let in.
type Options struct {
	Name         string // what people call the provider; empty means its host
	Issuer       string
	ClientID     string
	ClientSecret string
	// RedirectURL is where browsers come back to.
	RedirectURL string
	// Scopes are asked for besides openid.
	Scopes []string
	Rules  Rules
	Now    func() time.Time
	HTTP   *http.Client // nil means one that waits for a while only
}

// Provider is an [access.Provider] that speaks OpenID Connect. The provider is
// looked at when somebody signs in for the first time: it may be down when the
// program starts.
type Provider struct {
	options Options

	mutex sync.Mutex
	known *known
}

// known is what the provider has told about itself.
type known struct {
	provider *oidc.Provider
	verifier *oidc.IDTokenVerifier
	flow     oauth2.Config
}

// New makes a provider. It does not speak to anyone yet.
func New(options Options) *Provider {
	if options.HTTP == nil {
		options.HTTP = &http.Client{Timeout: patience}
	}
	return &Provider{options: options}
}

// Name implements [access.Provider].
func (p *Provider) Name() string {
	if p.options.Name != "" {
		return p.options.Name
	}
	address, err := url.Parse(p.options.Issuer)
	if err != nil {
		return p.options.Issuer
	}
	return address.Host
}

// discover asks the provider about itself, until it has answered once.
func (p *Provider) discover(ctx context.Context) (*known, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.known != nil {
		return p.known, nil
	}
	found, err := oidc.NewProvider(p.with(ctx), p.options.Issuer)
	if err != nil {
		return nil, task.Wrap(task.Unavailable, err, p.Name()+" cannot be asked who you are").WithHint("try again later; if it stays so, check oidc.issuer")
	}
	p.known = &known{
		provider: found,
		verifier: found.Verifier(&oidc.Config{ClientID: p.options.ClientID, Now: p.options.Now}),
		flow: oauth2.Config{
			ClientID: p.options.ClientID, ClientSecret: p.options.ClientSecret, RedirectURL: p.options.RedirectURL,
			Endpoint: found.Endpoint(), Scopes: append([]string{oidc.ScopeOpenID}, p.options.Scopes...),
		},
	}
	return p.known, nil
}

// with makes the libraries use our client.
func (p *Provider) with(ctx context.Context) context.Context {
	return oidc.ClientContext(ctx, p.options.HTTP)
}

// Begin implements [access.Provider].
func (p *Provider) Begin(ctx context.Context) (access.Attempt, error) {
	known, err := p.discover(ctx)
	if err != nil {
		return access.Attempt{}, err
	}
	attempt := access.Attempt{State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier()}
	attempt.URL = known.flow.AuthCodeURL(attempt.State, oidc.Nonce(attempt.Nonce), oauth2.S256ChallengeOption(attempt.Verifier))
	return attempt, nil
}

// Finish implements [access.Provider].
func (p *Provider) Finish(ctx context.Context, attempt access.Attempt, answer url.Values) (access.Identity, error) {
	if attempt.State == "" || subtle.ConstantTimeCompare([]byte(answer.Get("state")), []byte(attempt.State)) != 1 {
		return access.Identity{}, refuse(nil, "this is not the answer to a sign-in that this browser has begun")
	}
	known, err := p.discover(ctx)
	if err != nil {
		return access.Identity{}, err
	}
	if from := answer.Get("iss"); from != "" && from != p.options.Issuer {
		return access.Identity{}, refuse(nil, "the answer comes from another provider")
	}
	if said := answer.Get("error"); said != "" {
		return access.Identity{}, refuse(errors.New(said+": "+answer.Get("error_description")), p.Name()+" did not sign you in")
	}
	token, err := known.flow.Exchange(p.with(ctx), answer.Get("code"), oauth2.VerifierOption(attempt.Verifier))
	if err != nil {
		return access.Identity{}, p.exchangeError(err)
	}
	claims, err := p.claims(ctx, known, token, attempt.Nonce)
	if err != nil {
		return access.Identity{}, err
	}
	return p.options.Rules.identify(p.options.Issuer, claims)
}

// exchangeError tells a provider that says no from one that is not well.
func (p *Provider) exchangeError(err error) error {
	var refused *oauth2.RetrieveError
	if errors.As(err, &refused) && refused.ErrorCode == "invalid_grant" {
		return refuse(err, p.Name()+" does not know of this sign-in any more")
	}
	return task.Wrap(task.Unavailable, err, p.Name()+" did not say who you are").WithHint("try again; if it stays so, check oidc.client_id and the client secret")
}

// claims are what the provider says about the person, once it is certain that the
// provider says it, to us, and in answer to this attempt.
func (p *Provider) claims(ctx context.Context, known *known, token *oauth2.Token, nonce string) (claims, error) {
	raw, _ := token.Extra("id_token").(string)
	verified, err := known.verifier.Verify(p.with(ctx), raw)
	if err != nil {
		return nil, refuse(err, "what "+p.Name()+" says about you cannot be trusted")
	}
	if nonce == "" || subtle.ConstantTimeCompare([]byte(verified.Nonce), []byte(nonce)) != 1 {
		return nil, refuse(nil, "what "+p.Name()+" says about you is the answer to another sign-in")
	}
	if verified.AccessTokenHash != "" {
		if err := verified.VerifyAccessToken(token.AccessToken); err != nil {
			return nil, refuse(err, "what "+p.Name()+" says about you cannot be trusted")
		}
	}
	found := claims{}
	if err := verified.Claims(&found); err != nil {
		return nil, refuse(err, "what "+p.Name()+" says about you cannot be read")
	}
	found["sub"] = verified.Subject
	if p.options.Rules.complete(found) || known.provider.UserInfoEndpoint() == "" {
		return found, nil
	}
	return p.moreClaims(ctx, known, token, found)
}

// moreClaims asks for what was not in the token: some providers keep it short.
func (p *Provider) moreClaims(ctx context.Context, known *known, token *oauth2.Token, found claims) (claims, error) {
	info, err := known.provider.UserInfo(p.with(ctx), oauth2.StaticTokenSource(token))
	if err != nil {
		return nil, task.Wrap(task.Unavailable, err, p.Name()+" did not say who you are").WithHint("try again later")
	}
	if info.Subject != found["sub"] {
		return nil, refuse(nil, p.Name()+" speaks of somebody else")
	}
	more := claims{}
	if err := info.Claims(&more); err != nil {
		return nil, refuse(err, "what "+p.Name()+" says about you cannot be read")
	}
	maps.Copy(more, found) // what was signed counts
	return more, nil
}

func refuse(cause error, message string) error {
	if cause == nil {
		return task.Errorf(task.Unauthorized, "%s", message).WithHint("begin again")
	}
	return task.Wrap(task.Unauthorized, cause, message).WithHint("begin again")
}
