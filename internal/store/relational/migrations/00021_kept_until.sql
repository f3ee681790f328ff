-- +goose Up

-- Until when people were told that they can fetch what the task has pushed.
ALTER TABLE tasks ADD COLUMN kept_until BIGINT NOT NULL DEFAULT -62135596800000000;
