-- The texts that are counted in a cell of one axis with their positions, as keys of the type of the column's values; a
-- join turns values into positions. A text that is no value of the type is null, and joins none.
-- In: $texts, each another key, and $positions in their order. Grain: one row per text.
CREATE TEMP TABLE {table} AS
SELECT
    TRY_CAST(unnest(CAST($texts AS VARCHAR[])) AS {kind}) AS category,
    unnest(CAST($positions AS BIGINT[])) AS position
