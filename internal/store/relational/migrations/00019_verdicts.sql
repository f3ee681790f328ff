-- +goose Up

-- What a review of a pull request decided: approve, comment or request_changes. Empty for
-- documents, and for reviews that were made before this column.
ALTER TABLE reviews ADD COLUMN verdict TEXT NOT NULL DEFAULT '';
