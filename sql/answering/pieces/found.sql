-- The problem that is shown, if there is any.
SELECT coalesce((SELECT min(f.problem) FROM first_problems AS f), (SELECT min(p.problem) FROM {{ 'all_problems' if rows_by is defined else 'problems' }} AS p)) AS problem
