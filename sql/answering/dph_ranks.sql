-- The ranks of the categories (or bins, or groups of a level) of an axis by their counts: one row for each, the largest estimate
-- first, for each period (its latest revision). All intervals of counts and of ranks hold together with 95 %: a category whose
-- `rank_upper` is at most k is surely among the k largest, one whose `rank_lower` is above k surely is not.
-- `rank_lower` is one more than the number of categories that are surely larger, `rank_upper` leaves out those surely smaller.
-- `chance` says whether the interval leaves chance out. `with_chance := true` adds it: counts then vary as Poisson's do around
-- their means, which is too little where persons have several rows.
-- In: the release's table; an axis or a level; a box and a period as in dph_box. The cell for `other` has a rank, too; leave it
-- out by a box as {'ward': {'not': NULL}}.
{% set axes = '[CAST(axis AS VARCHAR)]' -%}
CREATE OR REPLACE MACRO {{ schema }}dph_ranks(
    release_name, axis, box := '{}', period := NULL, revision := NULL, with_chance := false
) AS TABLE
WITH dph_arguments AS (SELECT box AS box, period AS period, revision AS revision),
answered AS ({% include 'pieces/counted_by.sql' %}),
noisy AS (
    SELECT
        w.*,
        CASE
            WHEN w.decay IS NULL OR w._variance IS NULL THEN NULL
            WHEN w._answer.basis = 'known' THEN 0
            WHEN w._cells = 1 AND NOT w._is_linear
                THEN {{ draw_reach('w') }}
            ELSE {{ bound('w') }}
        END AS noise_half_width
    FROM (
        SELECT
            a.*, a._law.noise_scale, a._law.noise_variance, a._variance AS variance,
            {{ decay('a._law.noise_scale') }} AS decay,
            0.05 / count(*) OVER (PARTITION BY a.period) AS missed
        FROM answered AS a
    ) AS w
),
ranked AS (
    SELECT n.*, {{ with_chance(asked, 'n.noise_half_width', 'greatest(0, n._unbiased) + 1', sure='2 * ln(2 / n.missed)') }} AS _half_width FROM noisy AS n
),
counted AS (
    SELECT
        one.period, one._first,
        1 + count(*) FILTER (two._answer.estimate > one._answer.estimate) AS rank,
        1 + count(*) FILTER (two._unbiased - two._half_width > one._unbiased + one._half_width) AS rank_lower,
        count(*) - count(*) FILTER (two._unbiased + two._half_width < one._unbiased - one._half_width) AS rank_upper
    FROM ranked AS one JOIN ranked AS two ON two.period = one.period
    GROUP BY one.period, one._first
)
SELECT
    answered.* EXCLUDE (_first, _cells, _variance, _is_linear, _unbiased, _law, _answer, _cut, _period_end),
    counted.rank,
    CASE WHEN r._half_width IS NOT NULL THEN counted.rank_lower END AS rank_lower,
    CASE WHEN r._half_width IS NOT NULL THEN counted.rank_upper END AS rank_upper,
    r._answer.estimate AS estimate,
    r._unbiased AS unbiased,
    r._answer.noise_error AS noise_error,
    r._unbiased - r._half_width AS ci_lower,
    r._unbiased + r._half_width AS ci_upper,
    r._answer.basis AS basis,
    r._cells AS cells,
    {% set note -%}
    CASE
        WHEN r._half_width IS NULL AND r._variance IS NOT NULL THEN {{ notes.NO_LAW | literal }}
        WHEN r._half_width IS NULL THEN {{ notes.NO_INTERVAL | literal }}
        ELSE {{ notes.RANKS_TOGETHER | literal }}
    END
    {%- endset -%}
    {{ noted(note, 'r._cells') }} AS note,
    {% include 'pieces/chance.sql' %},
    {{ days('answered.period', 'answered._period_end') }}
FROM answered
JOIN ranked AS r ON r.period = answered.period AND r._first = answered._first
JOIN counted ON counted.period = answered.period AND counted._first = answered._first
ORDER BY answered.period, counted.rank, answered._first
