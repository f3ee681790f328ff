// Package gitlab is the adapter to GitLab: gitlab.com and self-managed servers,
// by the REST API. A pull request is a merge request here.
//
// GitLab has no reviews as one thing. A review of ours is a batch of draft notes
// that GitLab publishes at once: the comments on lines and a note with the text,
// in which the verdict is hidden as well, since GitLab's own record of it keeps
// neither text nor history. An approval is given at the end.
package gitlab
