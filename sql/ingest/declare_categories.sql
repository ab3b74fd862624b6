-- The declared categories of one axis with their positions, so that text becomes a position by a join.
-- In: $values, the categories in declared order. Grain: one row a category.
CREATE TEMP TABLE {table} AS
SELECT
    unnest(CAST($values AS VARCHAR[])) AS category,
    unnest(range(len($values))) AS position
