-- Reports whose id an earlier report has.
-- In: the table `ids`, a row a report: its number and its id in two halves. Grain: one row a repeated report.
SELECT ids.number
FROM ids
JOIN (
    SELECT upper, lower, min(number) AS first FROM ids GROUP BY upper, lower HAVING count(*) > 1
) AS repeated USING (upper, lower)
WHERE ids.number > repeated.first
ORDER BY ids.number
