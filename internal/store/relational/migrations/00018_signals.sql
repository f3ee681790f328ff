-- +goose Up

-- The items on which the bot was seen since the task was assigned.
ALTER TABLE tasks ADD COLUMN assigned_on TEXT NOT NULL DEFAULT '';

-- What a write keeps its order with when it fails; empty for most.
ALTER TABLE actions ADD COLUMN lane TEXT NOT NULL DEFAULT '';

-- Whether a write is made although the task is in a newer generation by then.
ALTER TABLE actions ADD COLUMN lasting BIGINT NOT NULL DEFAULT 0;
