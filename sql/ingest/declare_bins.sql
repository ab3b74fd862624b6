-- The declared bins of a long regular axis. A guessed bin is compared with its exact ends and corrected.
-- In: $edges, bin edges, rising. Grain: one row per bin.
CREATE TEMP TABLE {table} AS
SELECT
    unnest(range(len($edges) - 1)) AS bin,
    unnest(CAST($edges[:-2] AS DOUBLE[])) AS lower,
    unnest(CAST($edges[2:] AS DOUBLE[])) AS upper
