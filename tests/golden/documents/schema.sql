-- Counters and what happened to them.

CREATE TABLE counter (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name        text NOT NULL UNIQUE CHECK (name ~ '^[a-z][a-z0-9-]*$'),
    value       bigint NOT NULL DEFAULT 0,
    upper_limit bigint,
    made_at     timestamptz NOT NULL DEFAULT now()
);

COMMENT ON TABLE counter IS 'One row for each counter; rows are never deleted.';

CREATE TABLE change (
    counter_id bigint NOT NULL REFERENCES counter (id),
    amount     bigint NOT NULL CHECK (amount <> 0),
    changed_at timestamptz NOT NULL DEFAULT now(),
    source     inet
);

CREATE INDEX change_by_counter ON change (counter_id, changed_at DESC);

-- Adds to a counter and notes the change; returns the new value.
CREATE FUNCTION add_to(counter_name text, by_amount bigint) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    new_value bigint;
BEGIN
    INSERT INTO counter (name, value) VALUES (counter_name, by_amount)
    ON CONFLICT (name) DO UPDATE SET value = counter.value + excluded.value
    RETURNING value INTO new_value;

    INSERT INTO change (counter_id, amount)
    SELECT id, by_amount FROM counter WHERE name = counter_name;

    RETURN new_value;
END;
$$;

CREATE VIEW counter_over_limit AS
SELECT name, value, upper_limit, value - upper_limit AS excess
FROM counter
WHERE upper_limit IS NOT NULL AND value > upper_limit
ORDER BY excess DESC;

INSERT INTO counter (name, upper_limit) VALUES
    ('visitors', 100),
    ('parcels', 2500),
    ('errors', 0);
