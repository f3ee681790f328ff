-- +goose Up

-- Why an agent takes no tasks, as it says itself; empty if it does.
ALTER TABLE sightings ADD COLUMN unable TEXT NOT NULL DEFAULT '';
ALTER TABLE sightings ADD COLUMN detail TEXT NOT NULL DEFAULT '';
