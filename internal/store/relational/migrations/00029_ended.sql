-- +goose Up

-- What ended lately is found without going through all that ever ended.
DROP INDEX tasks_by_state;
CREATE INDEX tasks_by_state ON tasks (state, updated_at);
