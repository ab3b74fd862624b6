-- The change of a count between two publications, from rows of `summed`: rows of `barred`. `pairs` says which rows are pairs.
reaching AS (
    SELECT summed.*, {{ reach() }} AS reach
    FROM summed
    {{ widths(release) }}
),
-- One interval for the sum of both counts, if all draws of noise have the same law or the reports are independent; else two
-- intervals that hold together. Tables of one family share their noise: there the error is the most that it can be.
together AS (
    SELECT
        one.period AS first_period, two.period AS second_period,
        two.revision AS second_revision, two.place AS second_place, two.cell,
        one.period_end AS first_end, two.period_end AS second_end,
        date_diff('day', one.period_end, TRY_CAST(two.period AS DATE)) AS missing_days,
        coalesce(one.charge <> two.charge, true) AS is_independent,
        is_independent AND (
            coalesce(
                one.noise_scale = two.noise_scale AND (one.linear_variance IS NULL) = (two.linear_variance IS NULL), false
            ) OR one.step + two.step IS NOT NULL
        ) AS is_one_law,
        one.has_bars AND two.has_bars AS has_bars, one.is_known AND two.is_known AS is_known,
        greatest(one.slope, two.slope) AS slope, greatest(one.step, two.step) AS step,
        one.noise_scale, one.noise_variance, one.reach.two + two.reach.two AS half_width_apart,
        -- Two revisions of one period count the same rows.
        CASE
            WHEN one.period = two.period THEN 0 ELSE greatest(0, one.unbiased) + greatest(0, two.unbiased) + 2
        END AS chance_variance,
        one.linear_variance + two.linear_variance AS linear_variance, one.cells + two.cells AS cells,
        coalesce(one.linear_variance, one.cells * one.noise_variance) AS first_variance,
        coalesce(two.linear_variance, two.cells * two.noise_variance) AS second_variance,
        CASE
            WHEN is_independent THEN sqrt(first_variance + second_variance)
            ELSE sqrt(first_variance) + sqrt(second_variance)
        END AS noise_error,
        one.estimate AS first_estimate, two.estimate AS second_estimate,
        {'seen': one.seen, 'cut': one.cut, 'cut_lower': one.cut_lower, 'cut_upper': one.cut_upper} AS one_cap,
        {'seen': two.seen, 'cut': two.cut, 'cut_lower': two.cut_lower, 'cut_upper': two.cut_upper} AS two_cap,
        two.estimate - one.estimate AS estimate, two.unbiased - one.unbiased AS unbiased,
        CASE
            WHEN one.is_known AND two.is_known THEN 'known'
            WHEN one.reach.two + two.reach.two IS NULL THEN 'noise_only'
            WHEN one.linear_variance IS NULL AND two.linear_variance IS NULL THEN 'unbiased'
            ELSE 'linear'
        END AS basis
    FROM reaching AS one, reaching AS two
    WHERE {{ pairs }}
),
barred AS (
    SELECT d.*, {{ with_chance(asked, 'd.noise_half_width', 'd.chance_variance') }} AS half_width
    FROM (
        SELECT
            summed.*,
            coalesce(CASE WHEN summed.is_one_law THEN ({{ reach() }}).one END, summed.half_width_apart) AS noise_half_width
        FROM together AS summed
        {{ widths(release) }}
    ) AS d
)
