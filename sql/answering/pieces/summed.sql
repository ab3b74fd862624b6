-- The first part of every macro that compares or adds up publications: the sums of a box, rows of `summed`; the problem of the question
-- is in `side`. In: the box; periods, revisions and places as lists; named_periods, those that must be there; rows_by, axes
-- that rows are asked by.
WITH dph_arguments AS (
    SELECT
        box AS box, CAST({{ periods | default('[NULL]') }} AS VARCHAR[]) AS periods,
        CAST({{ revisions | default('[NULL]') }} AS BIGINT[]) AS revisions, {{ places | default('[1]') }} AS places,
        CAST({{ named_periods | default(periods) | default('[NULL]') }} AS VARCHAR[]) AS named_periods
),
side AS (
    SELECT answered.*
    FROM {{ named_view() }}, {{ inner('dph_summed', {
        'box': 'box', 'periods': 'periods', 'revisions': 'revisions', 'places': 'places', 'named_periods': 'named_periods'
    }, rows_by=rows_by | default('NULL')) }} AS answered
),
summed AS (SELECT unnest(side._summed) FROM side WHERE side._summed.period IS NOT NULL),
