-- The count in one box divided by the count in another, with its 95 % interval: one row for each period (its latest revision), in
-- order. Each end of the interval is missed with 2.5 % (Fieller's method); its upper end is infinite where the second count may
-- be 0. For estimates from reports, it combines an interval of each box.
-- `capped` says how far the rows that the bound cut may move it, from the quality table; without one, that this is not known.
-- `chance` says whether the interval leaves chance out. `with_chance := true` adds it: counts then vary as Poisson's do around
-- their means, which is too little where persons have several rows.
-- Boxes that overlap are taken to vary apart, so their interval is wider.
-- In: the release's table; two boxes and a period as in dph_box. For a part of a box, dph_share is narrower.
CREATE OR REPLACE MACRO {schema}dph_ratio(
    release_name, first_box, second_box, period := NULL, revision := NULL, with_chance := false
) AS TABLE
{opening},
{bins},
{two_boxes},
varying AS (
    SELECT
        d.*, CASE WHEN {asked} THEN greatest(0, d.first_unbiased) + 1 ELSE 0 END AS first_chance,
        CASE WHEN {asked} THEN greatest(0, d.second_unbiased) + 1 ELSE 0 END AS second_chance,
        {first_with_chance} AS first_far, {second_with_chance} AS second_far
    FROM box_pairs AS d
),
-- The lower end is the smallest ratio r at which first - r * second is not farther above 0 than its noise goes; the upper end is
-- one over that of second / first.
sides AS (
    SELECT
        b.*, e.*,
        greatest(0, b.first_square * b.second_square - b.crossed ** 2) / b.noise_variance / nullif(
            CASE
                WHEN b.is_nested THEN b.first_square + 2 * b.crossed + b.second_square
                ELSE greatest(b.first_square, b.second_square)
            END, 0
        ) AS draws
    FROM varying AS b, LATERAL (
        SELECT
            unnest(['lower', 'upper']) AS side,
            unnest([b.first_unbiased, b.second_unbiased]) AS above, unnest([b.second_unbiased, b.first_unbiased]) AS below,
            unnest([b.first_square + b.first_chance, b.second_square + b.second_chance]) AS above_square,
            unnest([b.second_square + b.second_chance, b.first_square + b.first_chance]) AS below_square,
            unnest([b.first_far, b.second_far]) AS above_reach, unnest([b.second_far, b.first_far]) AS below_reach
    ) AS e
),
reaching_sides AS (
    SELECT
        f.*, f.above * f.below - f.factor ** 2 * f.crossed AS half_linear,
        f.above ** 2 - f.factor ** 2 * f.above_square AS fixed,
        half_linear ** 2 - fixed * (f.below ** 2 - f.factor ** 2 * f.below_square) AS discriminant
    FROM (SELECT d.*, {deviations} AS factor FROM sides AS d) AS f
),
least_ratios AS (
    SELECT
        r.period, r.revision, r.side,
        CASE
            WHEN r.step IS NOT NULL
                THEN greatest(0, r.above - r.above_reach) / nullif(greatest(0, r.below + r.below_reach), 0)
            WHEN r.above <= 0 OR r.fixed <= 0 THEN 0
            WHEN r.discriminant >= 0 AND r.half_linear + sqrt(r.discriminant) > 0
                THEN r.fixed / (r.half_linear + sqrt(r.discriminant))
            -- The noise of a count below 0 leaves no ratio; every one is possible.
            ELSE 0
        END AS ratio
    FROM reaching_sides AS r
    WHERE r.has_bars
),
barred AS (
    SELECT
        b.*, CASE WHEN b.second_estimate > 0 THEN b.first_estimate / b.second_estimate END AS estimate,
        CASE WHEN b.second_unbiased > 0 THEN b.first_unbiased / b.second_unbiased END AS unbiased,
        coalesce(lower.ratio, CASE WHEN b.has_bars THEN 0 END) AS ci_lower,
        CASE WHEN upper.ratio > 0 THEN 1 / upper.ratio WHEN b.has_bars THEN CAST('inf' AS DOUBLE) END AS ci_upper,
        CASE WHEN b.step IS NULL THEN
            sqrt(greatest(0, b.first_square - 2 * unbiased * b.crossed + unbiased ** 2 * b.second_square))
                / b.second_unbiased
        END AS noise_error
    FROM box_pairs AS b
    LEFT JOIN least_ratios AS lower ON lower.period = b.period AND lower.revision = b.revision AND lower.side = 'lower'
    LEFT JOIN least_ratios AS upper ON upper.period = b.period AND upper.revision = b.revision AND upper.side = 'upper'
),
{capping}
first_problems AS (SELECT CAST(NULL AS VARCHAR) AS problem)
SELECT
    barred.period,
    barred.revision,
    barred.first_estimate,
    barred.second_estimate,
    barred.estimate,
    barred.unbiased,
    barred.noise_error,
    barred.ci_lower,
    barred.ci_upper,
    CASE WHEN barred.ci_lower IS NULL THEN 'noise_only' ELSE 'linear' END AS basis,
    barred.cells,
    CASE
        WHEN barred.estimate IS NULL THEN '{no_ratio}'
        WHEN barred.ci_lower IS NULL THEN '{no_interval}'
        WHEN barred.estimate NOT BETWEEN barred.ci_lower - 1e-9 AND barred.ci_upper + 1e-9 THEN '{smoothed}'
    END AS note,
    {shifted},
    {chance},
    {days_of_barred}
FROM ({found}) AS found LEFT JOIN barred ON true
LEFT JOIN capping ON capping.period = barred.period AND capping.revision = barred.revision
WHERE {no_problem}
ORDER BY barred.period
