-- The declared bins of one long regular axis, so that a guessed bin can be put right by comparing with its true ends.
-- In: $edges, bin edges, rising. Grain: one row a bin.
CREATE TEMP TABLE {table} AS
SELECT
    unnest(range(len($edges) - 1)) AS bin,
    unnest(CAST($edges[:-2] AS DOUBLE[])) AS lower,
    unnest(CAST($edges[2:] AS DOUBLE[])) AS upper
