-- What the bound cut in each publication of the release, and whether there is a bound at all: rows of `capping`.
capping AS (
    SELECT
        r.period, r.revision, bool_or(coalesce(r.privacy_unit = 'row' OR r.step IS NOT NULL OR r.take IN ('first', 'last'), false)) AS is_uncapped,
        {{ cut_of_all('q') }}
    FROM {{ table('dph_releases') }} AS r
    LEFT JOIN {{ table('dph_quality_rows') }} AS q
        ON q.release = r.release AND q.period = r.period AND q.revision = r.revision
    WHERE r.release = {{ name_of(release) }}
    GROUP BY r.period, r.revision
),
