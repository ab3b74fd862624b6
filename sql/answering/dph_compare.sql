-- The change of a count from one period to another, with its 95 % interval: one row, from the latest revisions.
-- `capped` tells how many rows the bound cut in each, where quality tables count them.
-- In: the release's table; two periods by their first days, the earlier one first; a box as in dph_box; a list of their two
-- revisions, which may be of one period.
CREATE OR REPLACE MACRO {schema}dph_compare(release_name, first_period, second_period, box := '{}', revision := NULL) AS TABLE
{opening},
{bins},
boxes AS (SELECT 'box' AS source, CAST(box AS JSON) AS box),
{boxes},
{nested},
{atoms},
{sums},
reaching AS (
    SELECT summed.*, {reach_of_two} AS half_width FROM summed
),
-- One interval for the sum of both counts, if all draws of noise have the same law or the reports are independent; else two
-- intervals that hold together.
together AS (
    SELECT
        one.period AS first_period, two.period AS second_period,
        coalesce(
            one.noise_scale = two.noise_scale AND (one.linear_variance IS NULL) = (two.linear_variance IS NULL), false
        ) OR one.step + two.step IS NOT NULL AS is_one_law,
        one.has_bars AND two.has_bars AS has_bars,
        greatest(one.slope, two.slope) AS slope, greatest(one.step, two.step) AS step,
        one.noise_scale, one.noise_variance, one.half_width + two.half_width AS half_width_apart,
        one.linear_variance + two.linear_variance AS linear_variance, one.cells + two.cells AS cells,
        sqrt(
            coalesce(one.linear_variance, one.cells * one.noise_variance)
            + coalesce(two.linear_variance, two.cells * two.noise_variance)
        ) AS noise_error,
        one.estimate AS first_estimate, two.estimate AS second_estimate,
        two.estimate - one.estimate AS estimate, two.unbiased - one.unbiased AS unbiased,
        CASE
            WHEN one.half_width + two.half_width IS NULL THEN 'noise_only'
            WHEN one.linear_variance IS NULL AND two.linear_variance IS NULL THEN 'unbiased'
            ELSE 'linear'
        END AS basis
    FROM reaching AS one, reaching AS two
    WHERE one.place = 1 AND two.place = 2
),
barred AS (
    SELECT summed.*, CASE WHEN summed.is_one_law THEN {reach} ELSE summed.half_width_apart END AS half_width
    FROM together AS summed
),
{caps}
first_problems AS (
    SELECT 'a comparison takes two periods, by their first days, or two revisions of one period' AS problem
    FROM asked_keys AS k
    HAVING count(k.period) < 2
        OR (SELECT count(*) = 2 AND count(DISTINCT (chosen.period, chosen.revision)) = 1 FROM chosen)
    UNION ALL
    SELECT 'a change of revisions takes two numbers, as in revision := [1, 2]'
    WHERE revision IS NOT NULL AND coalesce(len(TRY_CAST(CAST(revision AS VARCHAR) AS BIGINT[])) <> 2, true)
)
SELECT
    barred.first_period,
    barred.second_period,
    barred.first_estimate,
    barred.second_estimate,
    barred.estimate,
    barred.unbiased,
    barred.noise_error,
    barred.unbiased - barred.half_width AS ci_lower,
    barred.unbiased + barred.half_width AS ci_upper,
    barred.basis,
    barred.cells,
    CASE
        WHEN barred.half_width IS NULL THEN '{no_interval}'
        WHEN abs(barred.estimate - barred.unbiased) > barred.half_width + 1e-6 THEN '{smoothed}'
    END AS note,
    CASE
        WHEN one_cap.cut + two_cap.cut IS NOT NULL
            THEN 'in the first period ' || {first_capped} || '. In the second one ' || {second_capped}
    END AS capped
FROM ({found}) AS found LEFT JOIN barred ON true
LEFT JOIN caps AS one_cap ON one_cap.place = 1
LEFT JOIN caps AS two_cap ON two_cap.place = 2
WHERE {no_problem}
ORDER BY barred.first_period
