-- The one problem that is told, if there is any; read in the last WHERE, because a query that reads one column only would
-- never compute an error in another.
SELECT coalesce((SELECT min(f.problem) FROM first_problems AS f), (SELECT min(p.problem) FROM problems AS p)) AS problem
