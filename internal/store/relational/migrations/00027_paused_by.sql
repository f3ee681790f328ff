-- +goose Up

-- Who wanted a pause of everything; empty if it was no person.
ALTER TABLE general_pauses ADD COLUMN wanted_by TEXT NOT NULL DEFAULT '';
