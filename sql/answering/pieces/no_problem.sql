-- Stands in the last WHERE, because a query that reads one column only would never compute an error in another.
CASE WHEN found.problem IS NULL THEN true ELSE error('{macro}: ' || found.problem) END
