-- +goose Up
ALTER TABLE tasks ADD COLUMN cause TEXT NOT NULL DEFAULT '';
ALTER TABLE tasks ADD COLUMN occasion TEXT NOT NULL DEFAULT '';
ALTER TABLE tasks ADD COLUMN assigned_at BIGINT NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN began BIGINT NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN branch TEXT NOT NULL DEFAULT '';
ALTER TABLE tasks ADD COLUMN last_agent TEXT NOT NULL DEFAULT '';
ALTER TABLE tasks ADD COLUMN author TEXT NOT NULL DEFAULT '';
ALTER TABLE tasks ADD COLUMN blocked_by TEXT NOT NULL DEFAULT '';
ALTER TABLE tasks ADD COLUMN released BIGINT NOT NULL DEFAULT 0;
UPDATE tasks SET cause = 'assigned', assigned_at = created_at, began = 1;
CREATE INDEX tasks_of_branch ON tasks (forge, repository, branch) WHERE branch <> '';

-- Who does what only one server does, until when by the database's clock.
CREATE TABLE offices (
    name       TEXT   NOT NULL PRIMARY KEY,
    holder     TEXT   NOT NULL,
    held_until BIGINT NOT NULL
);
