-- The first part of dph_mean and dph_sum: rows of `moments`, as dph_moments_along answers them.
WITH dph_arguments AS (
    SELECT
        axis AS axis, low AS low, high AS high, box AS box, period AS period, revision AS revision, {{ asked }} AS with_chance
),
moments AS (
    SELECT unnest(answered._moments)
    FROM {{ named_view() }}, {{ inner('dph_moments_along', {
        'axis': 'axis', 'low': 'low', 'high': 'high', 'box': 'box', 'period': 'period', 'revision': 'revision',
        'with_chance': 'with_chance'
    }, constants={'asked_by': name}) }} AS answered
),
