-- For each publication of the release the table that answers: its own, or one of its family that tells less noise where these
-- axes and levels are named. In: boxes, as JSON; names, a list of further axes and levels.
JOIN (
            SELECT n.period, n.revision, n.is_latest, coalesce(b.best, n.release) AS release, coalesce(b.first_number, 0) AS first_number
            FROM query_table(regexp_replace(release_name, '[^.]*$', 'dph_releases')) AS n
            LEFT JOIN query_table(regexp_replace(release_name, '[^.]*$', 'dph_better')) AS b
                ON b.release = n.release AND b.period = n.period AND b.revision = n.revision AND b.names = (
                    -- A box that is no object, or names an axis twice, is refused by the release's own table.
                    SELECT list_sort(list_distinct(flatten(
                        [coalesce(TRY_CAST({names} AS VARCHAR[]), [])] || list_transform(g.boxes, lambda x: json_keys(x))
                    )))
                    FROM (SELECT list_filter([{boxes}], lambda x: x IS NOT NULL) AS boxes) AS g
                    WHERE len(list_filter(
                        g.boxes, lambda x: json_type(x) <> 'OBJECT' OR len(json_keys(x)) <> len(list_distinct(json_keys(x)))
                    )) = 0
                )
            WHERE n.release = (SELECT asked.release FROM asked)
        ) AS o ON o.release = r.release AND o.period = r.period AND o.revision = r.revision
