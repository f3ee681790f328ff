package github

import "slices"

// AppPermissions are those that an App needs, as the manifest of an App names them. They are
// what docs/forges.md lists. An App has a webhook of its own, so that it needs none for those
// of repositories.
func AppPermissions() map[string]string {
	return map[string]string{
		"metadata": "read", // goes with every other
		"contents": "write", "issues": "write", "pull_requests": "write", "statuses": "write",
		"checks": "read", "actions": "read",
		"workflows": "write", // to push changes to .github/workflows
	}
}

// HookEvents are the events that a webhook is enabled for.
func HookEvents() []string { return slices.Clone(hookEvents) }
