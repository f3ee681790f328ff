-- +goose Up

-- Which process holds what: when a process is known to have ended, nobody waits until
-- the time of what it held is over. Of an agent's process only a hash is kept.
ALTER TABLE tasks ADD COLUMN lease_process TEXT NOT NULL DEFAULT '';
ALTER TABLE actions ADD COLUMN held_by TEXT NOT NULL DEFAULT '';
ALTER TABLE messages ADD COLUMN held_by TEXT NOT NULL DEFAULT '';
CREATE INDEX tasks_of_process ON tasks (lease_process) WHERE lease_process <> '';
CREATE INDEX actions_of_process ON actions (held_by) WHERE held_by <> '' AND status = 'pending';
CREATE INDEX messages_of_process ON messages (held_by) WHERE held_by <> '' AND state = 'answering';
