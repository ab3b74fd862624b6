-- The first part of dph_mean and dph_sum: rows of `moments`, as dph_moments_along answers them.
WITH dph_arguments AS (
    SELECT
        axis AS axis, low AS low, high AS high, box AS box, period AS period, revision AS revision, {{ asked }} AS with_chance
),
answered AS (
    SELECT answered.*
    FROM {{ named_view() }}, {{ inner('dph_moments_along', {
        'axis': 'axis', 'low': 'low', 'high': 'high', 'box': 'box', 'period': 'period', 'revision': 'revision',
        'with_chance': 'with_chance'
    }, rows_by='"by"', constants={'asked_by': name}) }} AS answered
),
moments AS (SELECT unnest(answered._moments) FROM answered),
