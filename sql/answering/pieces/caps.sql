-- What the bound cut in each publication of the question, for a sentence beside answers: rows of `caps`.
bought AS (
    SELECT q.*, c.place
    FROM {{ table('dph_quality_rows') }} AS q
    JOIN chosen AS c ON c.release = q.release AND c.period = q.period AND c.revision = q.revision
),
caps AS (
    SELECT
        b.period, b.revision, b.place,
        {{ cut_of_all('b') }}
    FROM bought AS b
    GROUP BY b.period, b.revision, b.place
),
