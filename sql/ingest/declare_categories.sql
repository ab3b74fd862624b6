-- The texts that are counted in a cell of one axis with their positions; a join turns text into positions.
-- In: $texts, each once, and $positions in their order. Grain: one row per text.
CREATE TEMP TABLE {table} AS
SELECT
    unnest(CAST($texts AS VARCHAR[])) AS category,
    unnest(CAST($positions AS BIGINT[])) AS position
