-- The count in a box over several periods together, with its 95 % interval: one row, from the latest revisions of all periods from
-- the first to the last. Noise of periods is independent. A person counts in each period anew. `note` says how many days between
-- the first and the last are in no period: one was withdrawn, or not published yet.
-- In: the release's table; the first and the last period by their first days, null for no limit (the last one also by
-- its last day); a box as in dph_box.
{% set missing = missing_days('barred.missing_days', "', and not in this sum'") -%}
{% set most, added = 1, 'barred.periods' -%}
{% set below_zero -%}
    WHEN barred.estimate < 0 THEN {{ notes.BELOW | literal }}
{%- endset -%}
CREATE OR REPLACE MACRO {{ schema }}dph_over(release_name, first_period := NULL, last_period := NULL, box := '{}') AS TABLE
{% include 'pieces/summed.sql' %}
limits AS (SELECT CAST(first_period AS VARCHAR) AS first, CAST(last_period AS VARCHAR) AS last),
taken AS (
    SELECT
        s.*, max(s.noise_scale) OVER () AS one_scale, coalesce(s.linear_variance, s.cells * s.noise_variance) AS variance
    FROM summed AS s JOIN limits
        ON s.period >= coalesce(limits.first, s.period) AND s.period <= coalesce(limits.last, s.period)
),
-- The law of the noise is that of the widest noise; noise of another scale is like noise of that scale with a smaller weight.
together AS (
    SELECT
        min(s.period) AS first_period, max(s.period) AS last_period, max(s.period_end) AS period_end, CAST(count(*) AS BIGINT) AS periods,
        date_diff('day', min(TRY_CAST(s.period AS DATE)), max(s.period_end))
            - sum(date_diff('day', TRY_CAST(s.period AS DATE), s.period_end)) AS missing_days,
        CAST(sum(s.cells) AS BIGINT) AS cells, bool_and(s.has_bars) AS has_bars,
        count(DISTINCT s.noise_scale) + count(DISTINCT s.linear_variance IS NULL) <= 2 OR bool_and(s.step IS NOT NULL)
            AS is_one_law,
        max(s.slope) AS slope, CASE WHEN bool_and(s.step IS NOT NULL) THEN max(s.step) END AS step,
        bool_or(s.step IS NOT NULL) <> bool_and(s.step IS NOT NULL) AS is_mixed, bool_and(s.is_known) AS is_known,
        arg_max(s.noise_scale, s.noise_variance) AS noise_scale, max(s.noise_variance) AS noise_variance,
        arg_max(s.linear_variance IS NOT NULL, s.noise_variance) AS is_nested,
        CASE
            WHEN bool_and(s.has_bars) AND bool_or(s.linear_variance IS NOT NULL OR s.noise_scale <> s.one_scale)
                THEN {{ exact_sum('s.variance') }}
        END AS linear_variance,
        CASE WHEN bool_and(s.has_bars) THEN {{ exact_sum('s.variance') }} END AS variance,
        {{ exact_sum('s.estimate') }} AS estimate, CASE WHEN bool_and(s.has_bars) THEN {{ exact_sum('s.unbiased') }} END AS unbiased
    FROM taken AS s
),
reaching AS (
    SELECT
        summed.*, summed.variance / summed.noise_variance AS draws,
        CASE WHEN summed.is_one_law THEN ({{ reach() }}).one END AS half_width_of_one_law
    FROM together AS summed
    {{ widths(release) }}
),
barred AS (
    SELECT
        d.*,
        CASE WHEN d.has_bars AND NOT d.is_mixed
            THEN coalesce(d.half_width_of_one_law, sqrt(d.variance) * {{ deviations('d') }}) END AS half_width
    FROM reaching AS d
    {{ widths_of('d', 'd.draws') }}
),
first_problems AS (
    SELECT 'no period lies from ' || coalesce(limits.first, 'the first one') || ' to ' || coalesce(limits.last, 'the last one')
        || '; it has ' || (SELECT min(s.period) || ' to ' || max(s.period) FROM summed AS s) AS problem
    FROM limits
    WHERE NOT EXISTS (FROM taken)
    UNION ALL
    -- Texts would be compared as texts: no day, and another way to write one, is smaller or larger than every period.
    SELECT 'a period is named by its first day, as in 2026-03-02, not ' || named.day
    FROM (SELECT unnest([limits.first, limits.last]) AS day FROM limits) AS named
    WHERE NOT (regexp_full_match(named.day, '[0-9]{4}-[0-9]{2}-[0-9]{2}') AND TRY_CAST(named.day AS DATE) IS NOT NULL)
        AND NOT EXISTS (FROM summed AS s WHERE s.period = named.day)
    UNION ALL
    SELECT named.day || ' lies within the period ' || s.period || ', which is summed as a whole or not at all: name periods by their first days'
    FROM (
        SELECT TRY_CAST(limits.first AS DATE) AS day, TRY_CAST(limits.first AS DATE) AS until FROM limits
        UNION ALL
        -- A range may end on the last day of a period.
        SELECT TRY_CAST(limits.last AS DATE), TRY_CAST(limits.last AS DATE) + 1 FROM limits
    ) AS named
    JOIN summed AS s ON named.day > TRY_CAST(s.period AS DATE) AND named.until < s.period_end
)
SELECT
    barred.first_period,
    barred.last_period,
    barred.periods,
    barred.estimate,
    barred.unbiased,
    sqrt(barred.variance) AS noise_error,
    barred.unbiased - barred.half_width AS ci_lower,
    barred.unbiased + barred.half_width AS ci_upper,
    CASE
        WHEN barred.is_known THEN 'known'
        WHEN barred.half_width IS NULL THEN 'noise_only'
        WHEN barred.linear_variance IS NULL AND barred.half_width_of_one_law IS NOT NULL THEN 'unbiased'
        ELSE 'linear'
    END AS basis,
    barred.cells,
    {% include 'pieces/note_of_sum.sql' %} AS note,
    {{ days('barred.first_period', 'barred.period_end') }}
FROM ({% include 'pieces/found_beside.sql' %}) AS found LEFT JOIN barred ON true
WHERE {% include 'pieces/no_problem.sql' %}
