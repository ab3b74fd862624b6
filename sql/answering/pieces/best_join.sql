-- For each publication of the release the table that answers: its own, or one of its family that tells less noise where these
-- axes and levels are named. In: asked_names, in the order of the alphabet.
JOIN (
            SELECT
                n.period, n.revision, n.is_latest,
                coalesce(b.best, n.release) AS release, coalesce(b.first_number, 0) AS first_number
            FROM {{ table('dph_releases', release) }} AS n
            LEFT JOIN {{ table('dph_better', release) }} AS b
                ON b.release = n.release AND b.period = n.period AND b.revision = n.revision AND b.names = (
                    {% if boxes == {} %}{'by': CAST([] AS VARCHAR[]), 'boxed': CAST([] AS VARCHAR[])}{% else %}{% include 'pieces/asked_names.sql' %}{% endif %}
                )
            WHERE n.release = {{ name_of(release) }}
        ) AS o ON o.release = r.release AND o.period = r.period AND o.revision = r.revision
