// Package oidc lets people sign in by OpenID Connect: with the authorization code
// flow, PKCE, a state and a nonce. What the provider says about groups decides on
// the role, and who is in none of them has to be named to be let in.
package oidc
