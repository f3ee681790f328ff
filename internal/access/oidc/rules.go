package oidc

import (
	"slices"
	"strings"

	"github.com/toryo-dev/toryo/internal/access"
	"github.com/toryo-dev/toryo/internal/task"
)

// Everyone means all whom the provider knows, where users are named in [Rules].
const Everyone = "*"

// Rules say who is let in, and with which role.
type Rules struct {
	// LoginClaim and GroupsClaim name the claims with the login and the groups. A
	// name with dots leads into objects: realm_access.roles.
	LoginClaim, GroupsClaim string
	// Admins, Operators and Viewers are groups. Who is in several has the role that
	// may do most.
	Admins, Operators, Viewers []string
	// Users are the logins of those who are let in without a group, as viewers.
	Users []string
}

// claims are what a provider says about a person.
type claims map[string]any

// find returns a claim by its name, or by its way through objects.
func (c claims) find(name string) any {
	if value, found := c[name]; found {
		return value
	}
	outer, rest, dotted := strings.Cut(name, ".")
	inner, isObject := c[outer].(map[string]any)
	if !dotted || !isObject {
		return nil
	}
	return claims(inner).find(rest)
}

// texts is a claim that may be one text or a list of them.
func (c claims) texts(name string) []string {
	switch value := c.find(name).(type) {
	case string:
		return []string{value}
	case []any:
		var all []string
		for _, one := range value {
			if text, is := one.(string); is {
				all = append(all, text)
			}
		}
		return all
	default:
		return nil
	}
}

// complete reports whether the claims are all that the rules look at.
func (r Rules) complete(found claims) bool {
	return found.find(r.LoginClaim) != nil && (!r.looksAtGroups() || found.find(r.GroupsClaim) != nil)
}

func (r Rules) looksAtGroups() bool { return len(r.Admins)+len(r.Operators)+len(r.Viewers) > 0 }

// identify decides who the person is here.
func (r Rules) identify(issuer string, found claims) (access.Identity, error) {
	subject, _ := found["sub"].(string)
	login, _ := found.find(r.LoginClaim).(string)
	login = strings.TrimSpace(login)
	if subject == "" || login == "" {
		return access.Identity{}, task.Errorf(task.Forbidden, "the provider gives you no login").WithHint("check oidc.login_claim and oidc.scopes")
	}
	if r.LoginClaim == "email" && found["email_verified"] != true && found["email_verified"] != "true" {
		return access.Identity{}, task.Errorf(task.Forbidden, "the provider has not verified your address").
			WithHint("verify it there, and sign in again")
	}
	role := r.roleOf(login, found.texts(r.GroupsClaim))
	if role == "" {
		return access.Identity{}, task.Errorf(task.Forbidden, "%s is not among those who are let in", login).
			WithHint("ask an admin to name you in oidc.users, or one of your groups")
	}
	return access.Identity{ID: issuer + " " + subject, Login: login, Role: role}, nil
}

// roleOf is the role, or nothing for those who are not let in.
func (r Rules) roleOf(login string, groups []string) access.Role {
	among := func(wanted []string) bool {
		return slices.ContainsFunc(groups, func(group string) bool { return slices.Contains(wanted, group) })
	}
	named := func(user string) bool { return user == Everyone || task.SameLogin(user, login) }
	switch {
	case among(r.Admins):
		return access.Admin
	case among(r.Operators):
		return access.Operator
	case among(r.Viewers), slices.ContainsFunc(r.Users, named):
		return access.Viewer
	default:
		return ""
	}
}
