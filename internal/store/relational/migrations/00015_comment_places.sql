-- +goose Up

-- Where a comment stands, and what an edited one said before.
ALTER TABLE comment_log ADD COLUMN about TEXT NOT NULL DEFAULT '';
ALTER TABLE comment_log ADD COLUMN previous TEXT NOT NULL DEFAULT '';
