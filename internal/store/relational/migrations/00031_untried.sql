-- +goose Up

-- What a write takes the place of is found without reading the other writes that wait on its item.
CREATE INDEX actions_untried ON actions (item, sequence) WHERE status = 'pending' AND attempts = 0 AND coalesce_name <> '';
