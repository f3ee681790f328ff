-- +goose Up

-- What is asked for every few seconds is found without going through all that there is.
CREATE INDEX tasks_by_state ON tasks (state);
CREATE INDEX tasks_by_change ON tasks (updated_at);
CREATE INDEX board_items_by_change ON board_items (updated_at);
CREATE INDEX board_items_by_state ON board_items (kind, state);
