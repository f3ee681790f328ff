// Package items has what is known of the items of forges: issues and pull requests.
//
//	Snapshots     items as they were read last, with their age: one reading for all
//	Feed          the one place where all that tells of changes ends, with subscribers
//	Queue         items that are worth a look, each once
//	Rights        what people may do in a repository
//	Steering      whose words a task follows
//	WebhookTrust  which webhooks have proved to arrive, so that less is polled
package items
