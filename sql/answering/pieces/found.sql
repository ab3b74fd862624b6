-- The problem that is shown, if there is any.
SELECT coalesce((SELECT min(f.problem) FROM first_problems AS f), (SELECT min(p.problem) FROM problems AS p)) AS problem
