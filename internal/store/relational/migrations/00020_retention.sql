-- +goose Up

-- The generation in which what was kept of the task for a time was removed. A task that
-- begins again has a greater one.
ALTER TABLE tasks ADD COLUMN trimmed BIGINT NOT NULL DEFAULT 0;
CREATE INDEX tasks_to_trim ON tasks (updated_at) WHERE state IN ('done', 'failed', 'stopped') AND trimmed < generation;

CREATE INDEX actions_with_text ON actions (id) WHERE task IS NULL AND payload <> '' AND status <> 'pending';
CREATE INDEX audit_by_time ON audit (at);
