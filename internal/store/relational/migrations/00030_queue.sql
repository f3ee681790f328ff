-- +goose Up

-- The first tasks of each repository are found in the order in which they are handed out, and the
-- next moment at which a task is ready without looking at all that wait. That of most is below 0: they
-- wait for no time. The index has ready_at last, which changes no order: tasks that wait for their time
-- are passed over in it and are not read.
DROP INDEX tasks_queued;
CREATE INDEX tasks_queued ON tasks (forge, repository,
    (CASE WHEN reason = 'agent_restarted' THEN 0 ELSE 1 END),
    (CASE WHEN type = 'review' THEN 0 WHEN cause IN ('changes_requested', 'base_conflict', 'checks_failed') THEN 1 ELSE 2 END),
    priority DESC, assigned_at, id, ready_at) WHERE state = 'queued';
CREATE INDEX tasks_ready ON tasks (ready_at) WHERE state = 'queued' AND ready_at > 0;
