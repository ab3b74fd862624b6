-- The share of a box that lies in a part of it, with its 95 % interval: one row for each period (its latest revision), in order.
-- The interval combines the intervals of the part and of the rest of the box, which hold together with 95 %, so it is somewhat
-- wide. For linear estimates it combines those of the part and of the box, and is wider for large shares.
-- In: the release's table; the part and the whole as boxes, as in dph_box (the part is the cells in both boxes); a period.
CREATE OR REPLACE MACRO {schema}dph_share(release_name, part, whole := '{}', period := NULL, revision := NULL) AS TABLE
{opening},
{bins},
boxes AS (
    SELECT 'whole' AS source, {whole} AS box
    UNION ALL
    SELECT 'part' AS source, {part} AS box
),
{boxes},
{nested},
{atoms},
{sums},
-- The rest of the box for independent cells and for reports; the box itself for linear estimates.
pairs AS (
    SELECT
        part.* EXCLUDE (name),
        part.linear_variance IS NULL OR part.step IS NOT NULL AS by_rest,
        whole.linear_variance AS whole_variance,
        whole.cells - CASE WHEN by_rest THEN part.cells ELSE 0 END AS other_cells,
        whole.atoms - part.atoms AS other_atoms,
        whole.unbiased - CASE WHEN by_rest THEN part.unbiased ELSE 0 END AS other_unbiased,
        whole.estimate AS whole_estimate, whole.unbiased AS whole_unbiased
    FROM summed AS whole JOIN summed AS part ON part.period = whole.period
    WHERE whole.name = 'whole' AND part.name = 'part'
),
reaching AS (
    SELECT summed.*, {reach_of_two} AS part_reach FROM pairs AS summed
),
others AS (
    SELECT
        r.* EXCLUDE (cells, linear_variance, slope), r.cells AS part_cells, r.linear_variance AS part_variance,
        r.other_cells AS cells, coalesce({report_variance}, r.whole_variance) AS linear_variance,
        abs(r.gamma + r.delta * r.other_atoms) AS slope
    FROM reaching AS r
),
bounds AS (
    SELECT
        summed.*,
        greatest(0, summed.unbiased - summed.part_reach) AS part_lower,
        greatest(0, summed.unbiased + summed.part_reach) AS part_upper,
        greatest(0, summed.other_unbiased - {reach_of_two}) AS other_lower,
        greatest(0, summed.other_unbiased + {reach_of_two}) AS other_upper
    FROM others AS summed
),
barred AS (
    SELECT
        b.period, b.revision, b.part_cells AS cells, b.has_bars,
        CASE WHEN b.whole_estimate > 0 THEN greatest(0, least(1, b.estimate / b.whole_estimate)) END AS sound,
        CASE WHEN b.whole_estimate > 0 THEN b.estimate / b.whole_estimate END AS share,
        CASE WHEN b.whole_unbiased > 0 THEN b.unbiased / b.whole_unbiased END AS unbiased,
        CASE
            WHEN NOT b.has_bars THEN NULL
            WHEN b.part_lower <= 0 THEN 0
            WHEN b.by_rest THEN b.part_lower / (b.part_lower + b.other_upper)
            ELSE least(1, b.part_lower / b.other_upper)
        END AS ci_lower,
        CASE
            WHEN NOT b.has_bars THEN NULL
            WHEN b.by_rest AND b.other_lower <= 0 OR NOT b.by_rest AND b.other_lower <= b.part_upper THEN 1
            WHEN b.by_rest THEN b.part_upper / (b.part_upper + b.other_lower)
            ELSE b.part_upper / b.other_lower
        END AS ci_upper,
        CASE
            WHEN b.linear_variance IS NULL
                THEN sqrt(b.noise_variance * ((1 - sound) ** 2 * b.part_cells + sound ** 2 * b.cells))
            WHEN b.by_rest THEN sqrt({report_contrast})
            ELSE sqrt(b.part_variance) + sound * sqrt(b.linear_variance)
        END / b.whole_estimate AS noise_error,
        b.linear_variance
    FROM bounds AS b
),
first_problems AS (SELECT CAST(NULL AS VARCHAR) AS problem)
SELECT
    barred.period,
    barred.revision,
    barred.share AS estimate,
    barred.unbiased,
    barred.noise_error,
    barred.ci_lower,
    barred.ci_upper,
    CASE
        WHEN NOT barred.has_bars THEN 'noise_only'
        WHEN barred.linear_variance IS NULL THEN 'unbiased'
        ELSE 'linear'
    END AS basis,
    barred.cells,
    CASE
        WHEN barred.share IS NULL THEN '{no_whole}'
        WHEN NOT barred.has_bars THEN '{no_interval}'
        WHEN barred.share NOT BETWEEN 0 AND 1 THEN '{no_share}'
        WHEN barred.share NOT BETWEEN barred.ci_lower - 1e-9 AND barred.ci_upper + 1e-9 THEN '{smoothed}'
    END AS note
FROM ({found}) AS found LEFT JOIN barred ON true
WHERE {no_problem}
ORDER BY barred.period
