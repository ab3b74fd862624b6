-- The share of a box that lies in a part of it, with its 95 % interval: one row for each period (its latest revision), in order.
-- The interval is Fieller's: all shares p for which part - p * box is not farther from 0 than its noise goes, 19 times out of 20.
-- For noise of a scale below 1 and for reports, it combines intervals of the part and of the rest of the box, and is wider.
-- `capped` tells how many rows the bound cut, from the quality table. Where they are told from noise, and part and whole
-- have conditions on one axis alone and the table has that axis, it tells by how many points they move the answer, with an
-- interval of about 95 %. Without a quality table the bias is not known, as it says.
-- `chance` says whether the interval leaves chance out. `with_chance := true` adds it: counts then vary as Poisson's do around
-- their means, which is too little where persons have several rows.
-- `part_estimate` and `whole_estimate` are the two counts that are divided.
-- `by := ['age']` gives one row for each value of these axes or levels in which every box has cells, with the columns of the table:
-- what the question is told if its boxes have that value. Each interval holds with 95 % by itself; they do not all hold together.
-- In: the release's table; the part and the whole as boxes, as in dph_box (the part is the cells in both boxes); a period. Written
-- as `part := …, whole := …`, nobody takes them the other way round.
{% set rows_by = '"by"' -%}
{# Asked value by value, each would have a condition: the same table of a family answers. -#}
{% set along = 'coalesce(TRY_CAST("by" AS VARCHAR[]), [])' -%}
{% set columns = 't.*' -%}
{% set arguments = ['part', 'whole', 'period', 'revision'] -%}
{% set boxes = {'whole': argument('whole'), 'part': argument('part')} -%}
{% set named = "FROM (VALUES ('whole', 'whole'), ('part', 'whole'), ('part', 'part')) AS names(name, source)" -%}
{% set cut_in = {'first': 'part', 'second': 'whole'} -%}
CREATE OR REPLACE MACRO {{ schema }}dph_share(
    release_name, part, whole := '{}', period := NULL, revision := NULL, with_chance := false, by := NULL
) AS TABLE
{% include 'pieces/opening.sql' %},
{% include 'pieces/bins.sql' %},
{% include 'pieces/boxes.sql' %},
{% include 'pieces/rows_by.sql' %},
{% include 'pieces/nested.sql' %},
{% include 'pieces/crossed.sql' %},
{% include 'pieces/atoms.sql' %},
{% include 'pieces/sums.sql' %},
pairs AS (
    SELECT
        part.* EXCLUDE (name),
        whole.linear_variance AS whole_variance, part.is_known AND whole.is_known AS are_known,
        whole.cells - part.cells AS other_cells,
        whole.atoms - part.atoms AS other_atoms,
        whole.unbiased - part.unbiased AS other_unbiased,
        whole.estimate AS whole_estimate, whole.unbiased AS whole_unbiased,
        -- Of a known whole no noise is left, nor in the part what came with it.
        CASE WHEN whole.is_known AND NOT part.is_known
            THEN part.linear_variance - coalesce(c.covariance ** 2 / nullif(whole.nested_variance, 0), 0)
            ELSE coalesce(part.linear_variance, part.cells * part.noise_variance)
        END AS va,
        coalesce(whole.linear_variance, whole.cells * whole.noise_variance) AS vt,
        CASE WHEN part.is_known OR whole.is_known THEN 0 ELSE coalesce(c.covariance, part.cells * part.noise_variance) END AS vat,
        CASE WHEN {{ asked }} THEN greatest(0, part.unbiased) + 1 ELSE 0 END AS part_chance,
        CASE WHEN {{ asked }} THEN greatest(0, whole.unbiased - part.unbiased) + 1 ELSE 0 END AS other_chance
    FROM summed AS whole JOIN summed AS part
        ON part.period = whole.period AND part.revision = whole.revision AND part.cell = whole.cell
    LEFT JOIN covariances AS c ON c.period = part.period AND c.revision = part.revision AND c.cell = part.cell
    WHERE whole.name = 'whole' AND part.name = 'part'
),
reaching AS (
    SELECT summed.*, ({{ reach() }}).two AS part_reach
    FROM pairs AS summed
    {{ widths(release) }}
),
others AS (
    SELECT
        r.* EXCLUDE (cells, linear_variance, slope), r.cells AS part_cells, r.linear_variance AS part_variance,
        r.other_cells AS cells, {{ report_variance('r', 'r.other_atoms', 'r.other_unbiased') }} AS linear_variance,
        abs(r.gamma + r.delta * r.other_atoms) AS slope
    FROM reaching AS r
),
reaching_others AS (
    SELECT summed.*, ({{ reach() }}).two AS other_reach
    FROM others AS summed
    {{ widths(release) }}
),
-- `factor` is the reach of part - p * box in its standard deviations, at the p where its largest draw stands out most.
bounds AS (
    SELECT
        summed.*,
        greatest(0, summed.unbiased - {{ with_chance(asked, 'summed.part_reach', 'summed.part_chance') }}) AS part_lower,
        greatest(0, summed.unbiased + {{ with_chance(asked, 'summed.part_reach', 'summed.part_chance') }}) AS part_upper,
        greatest(0, summed.other_unbiased - {{ with_chance(asked, 'summed.other_reach', 'summed.other_chance') }}) AS other_lower,
        greatest(0, summed.other_unbiased + {{ with_chance(asked, 'summed.other_reach', 'summed.other_chance') }}) AS other_upper,
        CASE
            WHEN summed.step IS NOT NULL OR summed.cells = 0 OR summed.part_cells = 0 THEN NULL
            WHEN summed.part_variance IS NOT NULL THEN of_draws.deviations
            WHEN summed.noise_variance >= {{ least_variance }} THEN of_cells.deviations
        END AS factor
    FROM reaching_others AS summed
    ASOF LEFT JOIN {{ table('dph_linear_widths') }} AS of_draws
        ON of_draws.noise_scale = summed.noise_scale AND of_draws.draws
            <= greatest(1, (summed.va - coalesce(summed.vat ** 2 / nullif(summed.vt, 0), 0)) / summed.noise_variance * (1 + 1e-9))
    ASOF LEFT JOIN {{ table('dph_half_widths') }} AS of_cells
        ON of_cells.noise_scale = summed.noise_scale AND of_cells.cells <= least(summed.cells, summed.part_cells)
),
-- Shares p with square * p² - 2 * middle * p + fixed <= 0: between two roots, or outside of them where the box is near 0.
roots AS (
    SELECT
        q.*,
        (q.middle - sqrt(greatest(0, q.middle ** 2 - q.square * q.fixed))) / nullif(q.square, 0) AS root,
        (q.middle + sqrt(greatest(0, q.middle ** 2 - q.square * q.fixed))) / nullif(q.square, 0) AS other_root
    FROM (
        SELECT
            b.*,
            b.whole_unbiased ** 2 - b.factor ** 2 * (b.vt + b.part_chance + b.other_chance) AS square,
            b.unbiased * b.whole_unbiased - b.factor ** 2 * (b.vat + b.part_chance) AS middle,
            b.unbiased ** 2 - b.factor ** 2 * (b.va + b.part_chance) AS fixed
        FROM bounds AS b
    ) AS q
),
barred AS (
    SELECT
        b.period, b.revision, b.cell, b.part_cells AS cells, b.has_bars,
        b.are_known AND b.whole_estimate > 0 AND NOT {{ asked }} AS is_exact, b.estimate AS part_estimate, b.whole_estimate,
        CASE WHEN b.whole_estimate > 0 THEN greatest(0, least(1, b.estimate / b.whole_estimate)) END AS sound,
        CASE WHEN b.whole_estimate > 0 THEN b.estimate / b.whole_estimate END AS share,
        CASE WHEN b.whole_unbiased > 0 THEN b.unbiased / b.whole_unbiased END AS unbiased,
        CASE
            WHEN NOT b.has_bars THEN NULL
            WHEN is_exact THEN share
            WHEN b.part_cells = 0 THEN 0
            WHEN b.cells = 0 THEN 1
            WHEN b.square > 0 THEN greatest(0, least(1, b.root))
            WHEN b.factor IS NOT NULL THEN CASE WHEN b.other_root < 0 AND b.root <= 1 THEN greatest(0, b.root) ELSE 0 END
            WHEN b.part_lower <= 0 THEN 0
            ELSE b.part_lower / (b.part_lower + b.other_upper)
        END AS ci_lower,
        CASE
            WHEN NOT b.has_bars THEN NULL
            WHEN is_exact THEN share
            WHEN b.part_cells = 0 THEN 0
            WHEN b.cells = 0 THEN 1
            WHEN b.square > 0 THEN greatest(0, least(1, b.other_root))
            WHEN b.factor IS NOT NULL THEN CASE WHEN b.root > 1 AND b.other_root >= 0 THEN least(1, b.other_root) ELSE 1 END
            WHEN b.other_lower <= 0 THEN 1
            ELSE b.part_upper / (b.part_upper + b.other_lower)
        END AS ci_upper,
        CASE
            WHEN b.step IS NOT NULL THEN sqrt({{ report_contrast('b', '(1 - sound)', '(-sound)', 'b.atoms', 'b.unbiased', 'b.other_atoms', 'b.other_unbiased') }})
            -- Rounding may bring it below 0 where the part is the whole.
            WHEN b.has_bars AND sound IS NOT NULL THEN sqrt(greatest(0, b.va - 2 * sound * b.vat + sound ** 2 * b.vt))
        END / b.whole_estimate AS noise_error,
        coalesce(b.part_variance, b.linear_variance) AS linear_variance, b.whole_unbiased AS whole
    FROM roots AS b
),
{% include 'pieces/caps.sql' %}
{% include 'pieces/capping.sql' %}
{% include 'pieces/cut_along.sql' %}
-- The share as published, and as it would be with the rows cut; the bias is the difference. Its variance by the derivatives of
-- both: those by a noisy number of rows cut, and those by a noisy cell of the part and of the rest.
shifted AS (
    SELECT
        v.period, v.revision, v.cell, least(1, greatest(0, v.share)) AS share, 100 * (v.share - v.wider) AS points,
        100 * {{ sure }} * sqrt(
            v.cut_variance
                * ((1 - v.wider) ** 2 * v.part_draws + v.wider ** 2 * (v.whole_draws - v.part_draws)) / v.seen ** 2
            + coalesce(
                v.cell_variance * (
                    v.part_cells * ((1 - v.share) / v.counted - (1 - v.wider) / v.seen) ** 2
                    + v.rest_cells * (v.wider / v.seen - v.share / v.counted) ** 2
                ),
                v.noise_error ** 2
            )
        ) AS reach
    FROM (
        SELECT
            p.period, p.revision, p.cell, k.cut_variance, k.both_draws AS part_draws, k.second_draws AS whole_draws, b.noise_error,
            CASE WHEN p.linear_variance IS NULL THEN p.noise_variance END AS cell_variance,
            p.cells AS part_cells, p.other_cells AS rest_cells,
            p.whole_unbiased AS counted, p.whole_unbiased + k.second_cut AS seen,
            p.unbiased / counted AS share, (p.unbiased + k.first_cut) / seen AS wider
        FROM pairs AS p
        JOIN barred AS b ON b.period = p.period AND b.revision = p.revision AND b.cell = p.cell
        JOIN cut_along AS k ON k.period = p.period AND k.revision = p.revision AND k.cell = p.cell
        WHERE p.whole_unbiased > 0 AND p.whole_unbiased + k.second_cut > 0
    ) AS v
),
-- Without the bound, too, a share lies between 0 and 1: noise in a small number of rows cut may say otherwise.
biased AS (
    SELECT
        s.period, s.revision, s.cell, s.reach,
        greatest(100 * s.share - 100, least(100 * s.share, s.points)) AS points,
        greatest(100 * s.share - 100, least(100 * s.share, s.points - s.reach)) AS points_lower,
        greatest(100 * s.share - 100, least(100 * s.share, s.points + s.reach)) AS points_upper
    FROM shifted AS s
),
first_problems AS (
    FROM by_problems
    UNION ALL
    SELECT 'part and whole have no cells in common along axis ' || a.axis || '; dph_ratio divides two boxes that lie apart'
    FROM allowed AS a
    WHERE a.name = 'part' AND a.wanted = 0 AND 2 = (
        SELECT count(DISTINCT s.source)
        FROM (
            SELECT p.source FROM asked_positions AS p
            WHERE p.grid = a.grid AND p.level_of = a.axis
            GROUP BY p.source, p.position
            HAVING bool_and(p.is_around)
        ) AS s
    )
)
SELECT
    barred.period,
    barred.revision,
    grouped.* EXCLUDE (period, revision, _name, _first, _cells, _estimate, _unbiased, _known),
    barred.part_estimate,
    barred.whole_estimate,
    barred.share AS estimate,
    barred.unbiased,
    barred.noise_error,
    barred.ci_lower,
    barred.ci_upper,
    CASE
        WHEN barred.is_exact THEN 'known'
        WHEN NOT barred.has_bars THEN 'noise_only'
        WHEN barred.linear_variance IS NULL THEN 'unbiased'
        ELSE 'linear'
    END AS basis,
    barred.cells,
    {% set note -%}
    CASE
        WHEN barred.share IS NULL THEN {{ notes.NO_WHOLE | literal }}
        WHEN barred.is_exact THEN {{ notes.KNOWN | literal }}
        WHEN NOT barred.has_bars THEN {{ notes.NO_INTERVAL | literal }}
        WHEN barred.share NOT BETWEEN 0 AND 1 THEN {{ notes.NO_SHARE | literal }}
        WHEN barred.share NOT BETWEEN barred.ci_lower - 1e-9 AND barred.ci_upper + 1e-9 THEN {{ notes.SMOOTHED | literal }}
    END
    {%- endset -%}
    {{ noted(note, 'barred.cells') }} AS note,
    CASE
        WHEN capping.is_uncapped THEN NULL
        WHEN capping.cut_lower = 0 THEN {{ capped('capping') }}
        WHEN biased.reach < 100
            THEN {{ moved('share', "printf('%+.2f', biased.points)", "printf('%+.2f', biased.points_lower)", "printf('%+.2f', biased.points_upper)", ' points') }}
        WHEN capping.cut IS NULL THEN {{ notes.CAP_UNKNOWN | literal }}
        ELSE {{ capped('capping') }}
    END AS capped,
    {% include 'pieces/chance.sql' %},
    {{ days('barred.period', end_of('barred')) }}
FROM ({% include 'pieces/found.sql' %}) AS found LEFT JOIN barred ON true
LEFT JOIN capping ON capping.period = barred.period AND capping.revision = barred.revision
LEFT JOIN biased ON biased.period = barred.period AND biased.revision = barred.revision AND biased.cell = barred.cell
{% set of_box = 'whole' -%}
{% include 'pieces/columns_of_rows.sql' %}
WHERE {% include 'pieces/no_problem.sql' %}
ORDER BY barred.period, barred.cell
