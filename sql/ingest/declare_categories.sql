-- The declared categories of one axis with their positions; a join turns text into positions.
-- In: $values, the categories in declared order. Grain: one row per category.
CREATE TEMP TABLE {table} AS
SELECT
    unnest(CAST($values AS VARCHAR[])) AS category,
    unnest(range(len($values))) AS position
