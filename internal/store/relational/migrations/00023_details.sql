-- +goose Up

-- What was said about the state of a task, and what can be done about it.
ALTER TABLE tasks ADD COLUMN detail TEXT NOT NULL DEFAULT '';
ALTER TABLE tasks ADD COLUMN hint TEXT NOT NULL DEFAULT '';
