-- +goose Up

-- The items on which the bot was seen since the task was assigned.
ALTER TABLE tasks ADD COLUMN assigned_on TEXT NOT NULL DEFAULT '';
