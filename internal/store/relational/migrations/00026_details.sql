-- +goose Up

-- What was said about the state of a task, and what can be done about it.
ALTER TABLE tasks ADD COLUMN detail TEXT NOT NULL DEFAULT '';
ALTER TABLE tasks ADD COLUMN hint TEXT NOT NULL DEFAULT '';

-- Lists that people want to come back to.
CREATE TABLE saved_links (
	owner TEXT NOT NULL REFERENCES users (folded) ON DELETE CASCADE,
	name TEXT NOT NULL,
	path TEXT NOT NULL,
	created_at BIGINT NOT NULL,
	PRIMARY KEY (owner, name)
);
