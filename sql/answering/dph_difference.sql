-- The count in one box less the count in another, with its 95 % interval: one row for each period (its latest revision), in order.
-- `chance` says whether the interval leaves chance out. `with_chance := true` adds it: counts then vary as Poisson's do around
-- their means, which is too little where persons have several rows.
-- In: the release's table; two boxes and a period as in dph_box. Cells that lie in both boxes cancel out, and so does chance there.
CREATE OR REPLACE MACRO {{ schema }}dph_difference(
    release_name, first_box, second_box, period := NULL, revision := NULL, with_chance := false
) AS TABLE
{% include 'pieces/two_boxes.sql' %}
differing AS (
    SELECT
        b.*, CASE WHEN b.first_square IS NOT NULL THEN greatest(0, b.first_square - 2 * b.crossed + b.second_square) END
            AS variance,
        -- Of nested estimates, a draw may have a weight of 1 in each box.
        variance / b.noise_variance / CASE WHEN b.is_nested THEN 4 ELSE 1 END AS draws
    FROM box_pairs AS b
),
reached AS (
    SELECT
        d.*, d.first_alone + d.second_alone AS chance_variance,
        d.first_estimate - d.second_estimate AS estimate, d.first_unbiased - d.second_unbiased AS unbiased,
        CASE
            WHEN NOT d.has_bars THEN NULL
            WHEN d.step IS NOT NULL THEN d.first_reach + d.second_reach
            WHEN d.draws < 1e-9 THEN 0
            WHEN d.is_nested THEN of_draws.deviations * sqrt(d.variance)
            ELSE of_cells.half_width
        END AS noise_half_width
    FROM differing AS d
    ASOF LEFT JOIN {{ table('dph_linear_widths') }} AS of_draws
        ON of_draws.noise_scale = d.noise_scale AND of_draws.draws <= greatest(1, d.draws * (1 + 1e-9))
    ASOF LEFT JOIN {{ table('dph_half_widths') }} AS of_cells
        ON of_cells.noise_scale = d.noise_scale AND of_cells.cells >= d.draws - 1e-6
),
-- The same cells on both sides cancel out.
barred AS (
    SELECT d.*, CASE WHEN d.draws < 1e-9 AND NOT d.is_known THEN d.noise_half_width ELSE {{ with_chance(asked, 'd.noise_half_width', 'd.chance_variance') }} END AS half_width
    FROM reached AS d
)
SELECT
    barred.period,
    barred.revision,
    barred.first_estimate,
    barred.second_estimate,
    barred.estimate,
    barred.unbiased,
    sqrt(coalesce(barred.variance, barred.first_variance + barred.second_variance)) AS noise_error,
    barred.unbiased - barred.half_width AS ci_lower,
    barred.unbiased + barred.half_width AS ci_upper,
    CASE
        WHEN barred.is_known AND barred.half_width = 0 THEN 'known'
        WHEN barred.half_width IS NULL THEN 'noise_only'
        WHEN barred.is_nested OR barred.step IS NOT NULL THEN 'linear'
        ELSE 'unbiased'
    END AS basis,
    barred.cells,
    {% set note -%}
    CASE
        WHEN barred.is_known AND barred.half_width = 0 THEN {{ notes.KNOWN | literal }}
        WHEN barred.half_width IS NULL THEN {{ notes.NO_INTERVAL | literal }}
        WHEN abs(barred.estimate - barred.unbiased) > barred.half_width + 1e-6 THEN {{ notes.SMOOTHED | literal }}
    END
    {%- endset -%}
    {{ noted(note, 'barred.cells', most=2) }} AS note,
    {% include 'pieces/chance.sql' %},
    {{ days('barred.period', 'barred.period_end') }}
FROM barred
ORDER BY barred.period
