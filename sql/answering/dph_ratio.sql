-- The count in one box divided by the count in another, with its 95 % interval: one row for each period (its latest revision), in
-- order. Each end of the interval is missed with 2.5 % (Fieller's method); its upper end is infinite where the second count may
-- be 0. For estimates from reports, it combines an interval of each box.
-- `capped` tells how many rows the bound cut, from the quality table. Where they are told from noise, and both boxes have
-- conditions on one axis alone and the table has that axis, it tells by how much they move the answer, with an interval of
-- about 95 %. Without a quality table the bias is not known, as it says.
-- `chance` says whether the interval leaves chance out. `with_chance := true` adds it: counts then vary as Poisson's do around
-- their means, which is too little where persons have several rows.
-- Of a box within the other one, the ratio with the rows cut lies between 0 and 1, as that of dph_share does.
-- Rows in both boxes vary alike, but for estimates from reports, whose interval is wider there.
-- `by := ['age']` gives one row for each value of these axes or levels in which every box has cells, with the columns of the table:
-- what the question is told if its boxes have that value. Each interval holds with 95 % by itself; they do not all hold together.
-- In: the release's table; two boxes and a period as in dph_box. For a part of a box, dph_share is narrower.
{% set rows_by = '"by"' -%}
{% set is_cut_told = true -%}
CREATE OR REPLACE MACRO {{ schema }}dph_ratio(
    release_name, first_box, second_box, period := NULL, revision := NULL, with_chance := false, by := NULL
) AS TABLE
{% include 'pieces/two_boxes.sql' %}
cut_along AS (SELECT unnest(answered._cut) FROM answered WHERE answered._cut IS NOT NULL),
varying AS (
    SELECT
        d.*, d.first_alone + d.alike AS first_chance, d.second_alone + d.alike AS second_chance,
        {{ with_chance(asked, 'd.first_reach', 'greatest(0, d.first_unbiased) + 1') }} AS first_far,
        {{ with_chance(asked, 'd.second_reach', 'greatest(0, d.second_unbiased) + 1') }} AS second_far
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
        f.*, f.above * f.below - f.factor ** 2 * (f.crossed + f.alike) AS half_linear,
        f.above ** 2 - f.factor ** 2 * f.above_square AS fixed,
        half_linear ** 2 - fixed * (f.below ** 2 - f.factor ** 2 * f.below_square) AS discriminant
    FROM (
        SELECT d.*, {{ deviations('d') }} AS factor
        FROM sides AS d
        {{ widths_of('d', 'd.draws') }}
    ) AS f
),
least_ratios AS (
    SELECT
        r.period, r.revision, r.cell, r.side,
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
        b.*, b.is_known AND b.second_estimate > 0 AND NOT {{ asked }} AS is_exact,
        CASE WHEN b.second_estimate > 0 THEN b.first_estimate / b.second_estimate END AS estimate,
        CASE WHEN b.second_unbiased > 0 THEN b.first_unbiased / b.second_unbiased END AS unbiased,
        CASE WHEN is_exact THEN estimate ELSE coalesce(lower.ratio, CASE WHEN b.has_bars THEN 0 END) END AS ci_lower,
        CASE WHEN is_exact THEN estimate WHEN upper.ratio > 0 THEN 1 / upper.ratio WHEN b.has_bars THEN CAST('inf' AS DOUBLE) END AS ci_upper,
        CASE WHEN b.step IS NULL THEN
            sqrt(greatest(0, b.first_square - 2 * unbiased * b.crossed + unbiased ** 2 * b.second_square))
                / b.second_unbiased
        END AS noise_error
    FROM box_pairs AS b
    LEFT JOIN least_ratios AS lower ON lower.period = b.period AND lower.revision = b.revision AND lower.cell = b.cell AND lower.side = 'lower'
    LEFT JOIN least_ratios AS upper ON upper.period = b.period AND upper.revision = b.revision AND upper.cell = b.cell AND upper.side = 'upper'
),
{% include 'pieces/capping.sql' %}
-- The ratio as published, and as it would be with the rows cut; the bias is the difference. Its variance by the derivatives of
-- both: those by the noisy counts, which vary together, and those by a noisy number of rows cut in one box or in both. Only where
-- the second count is five standard deviations above 0, with and without the rows cut: nearer to it, derivatives say little.
biased AS (
    SELECT
        v.period, v.revision, v.cell, v.is_part, v.ratio, v.ratio - v.wider AS shift,
        {{ sure }} * sqrt(
            v.by_first ** 2 * v.first_square + 2 * v.by_first * v.by_second * v.crossed + v.by_second ** 2 * v.second_square
            + v.cut_square / v.seen ** 2 * (
                (v.first_draws - v.both_draws) + v.wider ** 2 * (v.second_draws - v.both_draws)
                + (1 - v.wider) ** 2 * v.both_draws
            )
        ) AS reach
    FROM (
        SELECT
            p.period, p.revision, p.cell, p.is_part, p.first_square, p.second_square, p.crossed, k.first_draws, k.second_draws, k.both_draws,
            k.cut_variance AS cut_square,
            p.second_unbiased AS counted, p.second_unbiased + k.second_cut AS seen,
            p.first_unbiased / counted AS ratio, (p.first_unbiased + k.first_cut) / seen AS wider,
            1 / counted - 1 / seen AS by_first, wider / seen - ratio / counted AS by_second
        FROM box_pairs AS p
        JOIN cut_along AS k ON k.period = p.period AND k.revision = p.revision AND k.cell = p.cell
        WHERE p.second_unbiased > 5 * sqrt(p.second_square)
            AND p.second_unbiased + k.second_cut > 5 * sqrt(p.second_square + cut_square * k.second_draws)
    ) AS v
),
moved AS (
    SELECT
        b.period, b.revision, b.cell, b.reach,
        greatest(b.least, least(b.most, b.shift)) AS shift,
        greatest(b.least, least(b.most, b.shift - b.reach)) AS lower,
        greatest(b.least, least(b.most, b.shift + b.reach)) AS upper
    FROM (
        SELECT
            biased.*, CASE WHEN biased.is_part THEN biased.ratio - 1 ELSE CAST('-inf' AS DOUBLE) END AS least,
            CASE WHEN biased.is_part THEN biased.ratio ELSE CAST('inf' AS DOUBLE) END AS most
        FROM biased
    ) AS b
)
SELECT
    barred.period,
    barred.revision,
    answered.* EXCLUDE (_pair, _cut),
    barred.first_estimate,
    barred.second_estimate,
    barred.estimate,
    barred.unbiased,
    barred.noise_error,
    barred.ci_lower,
    barred.ci_upper,
    CASE WHEN barred.is_exact THEN 'known' WHEN barred.ci_lower IS NULL THEN 'noise_only' ELSE 'linear' END AS basis,
    barred.cells,
    {% set note -%}
    CASE
        WHEN barred.estimate IS NULL THEN {{ notes.NO_RATIO | literal }}
        WHEN barred.is_exact THEN {{ notes.KNOWN | literal }}
        WHEN barred.ci_lower IS NULL THEN {{ notes.NO_INTERVAL | literal }}
        WHEN barred.estimate NOT BETWEEN barred.ci_lower - 1e-9 AND barred.ci_upper + 1e-9 THEN {{ notes.SMOOTHED | literal }}
    END
    {%- endset -%}
    {{ noted(note, 'barred.cells', most=2) }} AS note,
    CASE
        WHEN capping.is_uncapped THEN NULL
        WHEN capping.cut_lower = 0 THEN {{ capped('capping') }}
        WHEN moved.reach IS NOT NULL
            THEN {{ moved('ratio', number('(moved.shift)', '+', 3), number('(moved.lower)', '+', 3), number('(moved.upper)', '+', 3)) }}
        WHEN capping.cut IS NULL THEN {{ notes.CAP_UNKNOWN | literal }}
        ELSE {{ capped('capping') }}
    END AS capped,
    {% include 'pieces/chance.sql' %},
    {{ days('barred.period', 'barred.period_end') }}
FROM barred
LEFT JOIN answered
    ON answered._pair.period = barred.period AND answered._pair.revision = barred.revision AND answered._pair.cell = barred.cell
LEFT JOIN capping ON capping.period = barred.period AND capping.revision = barred.revision
LEFT JOIN moved ON moved.period = barred.period AND moved.revision = barred.revision AND moved.cell = barred.cell
ORDER BY barred.period, barred.cell
