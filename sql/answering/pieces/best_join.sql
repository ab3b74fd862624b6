-- For each publication of the release the table that answers: its own, or one of its family that tells less noise where these
-- axes and levels are named. In: asked_names, in the order of the alphabet.
JOIN (
            SELECT
                n.period, n.revision, n.is_latest,
                coalesce(b.best, n.release) AS release, coalesce(b.first_number, 0) AS first_number
            FROM query_table(regexp_replace(release_name, '[^.]*$', 'dph_releases')) AS n
            LEFT JOIN query_table(regexp_replace(release_name, '[^.]*$', 'dph_better')) AS b
                ON b.release = n.release AND b.period = n.period AND b.revision = n.revision AND b.names = (
                    {asked_names}
                )
            WHERE n.release = (SELECT asked.release FROM asked)
        ) AS o ON o.release = r.release AND o.period = r.period AND o.revision = r.revision
