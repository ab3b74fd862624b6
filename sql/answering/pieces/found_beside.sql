-- The problem that is shown, if there is any, of a macro that asks `side`.
SELECT coalesce((SELECT min(f.problem) FROM first_problems AS f), (SELECT min(s._problem) FROM side AS s)) AS problem
