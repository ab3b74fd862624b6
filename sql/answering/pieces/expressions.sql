-- Expressions that the macros share: macros of Jinja2, which every file of this folder calls by their names.

-- A table of the catalogue that a release lies in. In: its name; the macro's argument that names the release.
{% macro table(name, release='release_name') -%}
query_table(regexp_replace({{ release }}, {{ beside(name) }}))
{%- endmacro %}

-- The name of a release as the catalogue has it. In: the macro's argument that names the release.
{% macro name_of(release='release_name') -%}
lower(trim(split_part({{ release }}, '.', -1), '"'))
{%- endmacro %}

-- A note, and with it the words on a unit that counts once in each of several cells or periods; null without either. In: the note;
-- how many cells are added; more than `most` of them are several of one sum; periods that are added; the release, and `names` if it is
-- one of several.
{% macro noted(note, cells, most=1, periods='1', release='release_name', names='') -%}
nullif(concat_ws('; ', nullif({{ note }}, ''), CASE
        WHEN {{ periods }} > 1 THEN {{ counted_once(notes.ONCE_A_PERIOD, 1, release, names) }}
        WHEN {{ cells }} > {{ most }} THEN {{ counted_once(notes.ONCE_A_CELL, 2, release, names) }}
    END), '')
{%- endmacro %}

{% macro counted_once(words, bound, release, names) -%}
(
            SELECT any_value('one ' || r.counted_once || {{ words | literal }}) FROM {{ table('dph_releases', release) }} AS r
            WHERE r.release IN ({{ names or name_of(release) }}) AND r.max_rows_per_unit >= {{ bound }}
        )
{%- endmacro %}

-- The ends of the interval of a number, cut off at the limits that public figures leave, as far as it holds its number and reaches the
-- limits; without figures these are null.
{% macro limited_lower(end, number, known_least, known_most) -%}
CASE WHEN {{ known_most }} IS NOT NULL AND {{ end }} IS NOT NULL
                THEN least({{ number }}, greatest({{ end }}, {{ known_least }}), {{ known_most }}) ELSE {{ end }} END
{%- endmacro %}

{% macro limited_upper(end, number, known_least, known_most) -%}
CASE WHEN {{ known_most }} IS NOT NULL AND {{ end }} IS NOT NULL
                THEN greatest({{ number }}, least({{ end }}, {{ known_most }}), {{ known_least }}) ELSE {{ end }} END
{%- endmacro %}

-- The sum of a column, which does not depend on the order of its rows: whole 2^-20ths are added as integers.
{% macro exact_sum(number) -%}
(
            sum(CAST(floor(({{ number }}) * 1048576) AS HUGEINT)) / 1048576
            + fsum(({{ number }}) - floor(({{ number }}) * 1048576) / 1048576)
        )
{%- endmacro %}

-- Whether a cell of dph_cells, as t, lies in a box of conditions, as c.
{% macro inside() -%}
t.period = c.period AND t.revision = c.revision AND t.cell_number BETWEEN c.first_cell AND c.final_cell
        AND (c.is_run OR len(list_filter(
            c.allowed,
            lambda k: (t.cell_number // k.stride) % k.size NOT BETWEEN k.first AND k.final
                OR coalesce(get_bit(k.bits, CAST((t.cell_number // k.stride) % k.size AS INTEGER)) = 0, false)
        )) = 0)
{%- endmacro %}

-- The share of a cell that lies in a box: the product of the shares of the bins that the ends of the box cut.
{% macro weight() -%}
CASE WHEN c.is_cut THEN list_product(list_transform(
                    c.allowed,
                    lambda k: CASE (t.cell_number // k.stride) % k.size
                        WHEN k.first THEN k.first_share
                        WHEN k.final THEN k.final_share
                        ELSE 1.0
                    END
                )) ELSE 1.0 END
{%- endmacro %}

-- The day after the last one of the period of a row, whose table `row` has a period.
{% macro end_of(row) -%}
(SELECT max(c.period_end) FROM chosen AS c WHERE c.period = {{ row }}.period)
{%- endmacro %}

-- The days of the period of an answer, null for period `all`: its first day, and the day after its last. In: period; end.
{% macro days(period, end, prefix='') -%}
TRY_CAST({{ period }} AS DATE) AS {{ prefix }}period_start,
    {{ end }} AS {{ prefix }}period_end
{%- endmacro %}

-- How many days between periods are in no published one, in words; null where there are none. In: days; more, words as SQL.
{% macro missing_days(days, more) -%}
CASE WHEN {{ days }} > 0 THEN {{ days }} || CASE WHEN {{ days }} = 1 THEN {{ notes.MISSING_DAY | literal }} ELSE {{ notes.MISSING_DAYS | literal }} END || {{ more }} END
{%- endmacro %}

-- A number in words, never as a power of ten: whole from 1,000 on. In: number; sign, + where both signs are written; digits, of a
-- smaller one.
{% macro number(number, sign='', digits=4) -%}
CASE
            WHEN abs({{ number }}) >= 999.5 AND TRY_CAST(round({{ number }}) AS HUGEINT) IS NOT NULL
                THEN CASE WHEN {{ number }} > 0 THEN '{{ sign }}' ELSE '' END || format('{:,}', CAST(round({{ number }}) AS HUGEINT))
            WHEN abs({{ number }}) < 0.0001 AND {{ number }} <> 0 THEN printf('%{{ sign }}.6f', {{ number }})
            ELSE printf('%{{ sign }}.{{ digits }}g', {{ number }})
        END
{%- endmacro %}

-- A range of an axis in words, from its first and its last bin, `low` and `high`: as views and published tables say them.
{% macro ends_in_words(low, high) -%}
CASE
            WHEN {{ low }}.calendar THEN (
                SELECT CASE WHEN w.first = w.last THEN w.first ELSE w.first || ' to ' || w.last END
                FROM (
                    SELECT
                        left({{ low }}.lower_end, l.letters) AS first,
                        left(CAST(TRY_CAST({{ high }}.upper_end AS DATE) - 1 AS VARCHAR), l.letters) AS last
                    FROM (
                        SELECT CASE
                            WHEN {{ low }}.lower_end LIKE '%-01-01' AND {{ high }}.upper_end LIKE '%-01-01' THEN 4
                            WHEN {{ low }}.lower_end LIKE '%-01' AND {{ high }}.upper_end LIKE '%-01' THEN 7
                            ELSE 10
                        END AS letters
                    ) AS l
                ) AS w
            )
            WHEN NOT isfinite({{ low }}.bin_lower) AND NOT isfinite({{ high }}.bin_upper) THEN 'all'
            WHEN NOT isfinite({{ low }}.bin_lower) THEN {{ high }}.below
            WHEN NOT isfinite({{ high }}.bin_upper) THEN {{ low }}.above
            WHEN {{ low }}.first = {{ high }}.last THEN {{ low }}.first
            ELSE {{ low }}.first || ' to ' || {{ high }}.last
        END
{%- endmacro %}

-- The beginning of a sentence on rows that the bound cut, from a row of `row`: which rows of each unit the quality table sees.
{% macro among_first(row) -%}
coalesce('among the first ' || {{ row }}.seen || ' ' || {{ row }}.bounded || ' of each unit ({{ (notes.UNSEEN | literal)[1:-1] }}), ', '')
{%- endmacro %}

-- The sentence on what the bound cut, from a row of `caps`; null without a quality table.
{% macro capped(row) -%}
CASE
            WHEN {{ row }}.cut_lower = 0 THEN
                'no cut ' || {{ row }}.bounded || ' detected' || coalesce(' among the first ' || {{ row }}.seen || ' of each unit', '') || '; at most '
                || format('{:,}', CAST(round({{ row }}.cut_upper) AS BIGINT)) || ' (95 %)'
            ELSE
                {{ among_first(row) }} || 'the bound cut about ' || format('{:,}', CAST(round({{ row }}.cut) AS BIGINT)) || ' ' || {{ row }}.bounded || ' (95 %: '
                || format('{:,}', CAST(round({{ row }}.cut_lower) AS BIGINT)) || ' to '
                || format('{:,}', CAST(round({{ row }}.cut_upper) AS BIGINT)) || '); no interval covers them'
        END
{%- endmacro %}

-- The sentence on how far the bound moves an answer. In: beginning; what is moved; three numbers in words, and their unit.
{% macro moved(what, shift, shift_lower, shift_upper, unit='') -%}
{{ among_first('capping') }} || 'the bound moves this {{ what }} by about ' || {{ shift }}
            || '{{ unit }} (95 %: ' || {{ shift_lower }} || ' to ' || {{ shift_upper }} || ')'
{%- endmacro %}

-- What the bound cut of all rows, from rows of a quality table, `row`: its interval is cut off at 0. One that lies below 0 as a
-- whole does not say that surely nothing was cut: then it reaches as far above 0 as the noise does.
{% macro cut_of_all(row) -%}
max({{ row }}.position) FILTER ({{ row }}.statistic = 'units') AS seen, any_value({{ row }}.bounded) AS bounded,
        any_value(greatest(0, {{ row }}.estimate)) FILTER ({{ row }}.statistic = 'cut' AND {{ row }}.axis IS NULL) AS cut,
        any_value(greatest(0, {{ row }}.ci_lower)) FILTER ({{ row }}.statistic = 'cut' AND {{ row }}.axis IS NULL) AS cut_lower,
        any_value(CASE WHEN {{ row }}.ci_upper > 0 THEN {{ row }}.ci_upper ELSE ({{ row }}.ci_upper - {{ row }}.ci_lower) / 2 END)
            FILTER ({{ row }}.statistic = 'cut' AND {{ row }}.axis IS NULL) AS cut_upper
{%- endmacro %}

-- The variance by chance of counts in the bins of an axis that vary apart, each with a weight; 0 if the question leaves chance out.
{% macro chance_of(weight) -%}
CASE WHEN given.with_chance THEN fsum(greatest(0, a.unbiased) * {{ weight }} ORDER BY a.position) ELSE 0 END
{%- endmacro %}

-- Half the width of an interval, with chance if the question asks for it: `reach` by the noise, and so many times the standard
-- deviation of counts that vary as Poisson's do, whose square is `variance`.
{% macro with_chance(asked, reach, variance, sure=normal_square) -%}
CASE WHEN {{ asked }} THEN sqrt(({{ reach }}) ** 2 + {{ sure }} * ({{ variance }})) ELSE {{ reach }} END
{%- endmacro %}

-- By how much the logarithm of the probability of a draw falls from one whole number to the next: one over its scale, a fraction
-- as text.
{% macro decay(scale) -%}
coalesce(TRY_CAST(split_part({{ scale }}, '/', 2) AS DOUBLE), 1) / TRY_CAST(split_part({{ scale }}, '/', 1) AS DOUBLE)
{%- endmacro %}

-- How far one draw of noise goes, from a row of `row`: missed (the probability that it goes farther) and decay. The law of the
-- draw, with that in `bound`.
{% macro draw_reach(row) -%}
greatest(0, ceil(ln(2 / ({{ row }}.missed * (1 + exp(-{{ row }}.decay)))) / {{ row }}.decay - 1 + 1e-9))
{%- endmacro %}

-- Half the width of the interval of a linear estimate by Chernoff's inequality, from a row of `row`: variance, missed (the
-- probability that the interval misses), noise_scale and noise_variance of a draw. No draw may have a weight above 1.
{% macro bound(row, release='release_name') -%}
list_min(list_transform(
            (
                SELECT m.moments FROM {{ table('dph_moments', release) }} AS m
                WHERE m.noise_scale = {{ row }}.noise_scale
            ),
            lambda u: (ln(2 / {{ row }}.missed) + {{ row }}.variance / {{ row }}.noise_variance * u.log_moment) / u.rate
        ))
{%- endmacro %}

-- Half the width of the 95 % interval of a weighted sum, in its standard deviations. In: the row; `of_draws` and `of_cells`, which
-- `widths_of` joins to it.
{% macro deviations(row) -%}
CASE WHEN {{ row }}.is_nested THEN of_draws.deviations WHEN NOT {{ row }}.is_nested THEN of_cells.deviations END
{%- endmacro %}

-- The widths that `deviations` reads, joined to a row by the least number of draws of its sum: that is its variance over that of
-- one draw with the largest weight.
{% macro widths_of(row, draws, release='release_name') -%}
ASOF LEFT JOIN {{ table('dph_linear_widths', release) }} AS of_draws
        ON of_draws.noise_scale = {{ row }}.noise_scale AND of_draws.draws <= greatest(1, {{ draws }} * (1 + 1e-9))
    ASOF LEFT JOIN {{ table('dph_half_widths', release) }} AS of_cells
        ON of_cells.noise_scale = {{ row }}.noise_scale AND of_cells.cells <= greatest(1, {{ draws }} * (1 + 1e-9))
{%- endmacro %}

-- Variance of a count from reports, at the estimated count; null if `law` has no law of reports.
{% macro report_variance(law, atoms, count) -%}
CASE WHEN {{ law }}.step IS NOT NULL THEN greatest(
            0,
            {{ law }}.alpha * {{ atoms }} - {{ law }}.beta * {{ atoms }} ** 2
                + {{ law }}.gamma * greatest(0, {{ count }}) + {{ law }}.delta * {{ atoms }} * greatest(0, {{ count }})
        ) END
{%- endmacro %}

-- Variance of weight * count + other_weight * other_count, from reports, for two disjoint sets; null if `law` has no law of
-- reports.
{% macro report_contrast(law, weight, other_weight, atoms, count, other_atoms, other_count) -%}
CASE WHEN {{ law }}.step IS NOT NULL THEN greatest(
            0,
            {{ law }}.alpha * ({{ weight }} ** 2 * {{ atoms }} + {{ other_weight }} ** 2 * {{ other_atoms }})
                - {{ law }}.beta * ({{ weight }} * {{ atoms }} + {{ other_weight }} * {{ other_atoms }}) ** 2
                + {{ law }}.gamma * ({{ weight }} ** 2 * greatest(0, {{ count }}) + {{ other_weight }} ** 2 * greatest(0, {{ other_count }}))
                + {{ law }}.delta * ({{ weight }} * {{ atoms }} + {{ other_weight }} * {{ other_atoms }})
                    * ({{ weight }} * greatest(0, {{ count }}) + {{ other_weight }} * greatest(0, {{ other_count }}))
        ) END
{%- endmacro %}

-- Half the width of the interval for a count from reports: `factor` standard deviations, and a correction for few bits. From a
-- row of `row`: its variance, the slope (change of the variance per record), and the step (change of the estimate by one bit).
{% macro report_reach(row, factor, variance) -%}
{{ factor }} ** 2 * ({{ row }}.slope + {{ row }}.step / 3) / 2 + sqrt(
            ({{ factor }} ** 2 * ({{ row }}.slope + {{ row }}.step / 3) / 2) ** 2 + {{ factor }} ** 2 * {{ row }}.{{ variance }}
        )
{%- endmacro %}

-- Half the width of the interval for a row of `summed`: `one` at 95 %, `two` at the level at which two intervals hold together.
-- In: `of_cells` and `of_draws`, which `widths` joins to the row.
{% macro reach() -%}
CASE
        WHEN NOT summed.has_bars THEN NULL
        WHEN summed.cells = 0 OR summed.linear_variance = 0 THEN {'one': 0.0, 'two': 0.0}
        WHEN summed.linear_variance IS NULL
            THEN {'one': CAST(of_cells.half_width AS DOUBLE), 'two': CAST(of_cells.half_width_of_two AS DOUBLE)}
        WHEN summed.step IS NOT NULL THEN {
            'one': {{ report_reach('summed', normal, 'linear_variance') }},
            'two': {{ report_reach('summed', normal_of_two, 'linear_variance') }}
        }
        ELSE {
            'one': sqrt(summed.linear_variance) * of_draws.deviations,
            'two': sqrt(summed.linear_variance) * of_draws.deviations_of_two
        }
    END
{%- endmacro %}

-- The widths that `reach` reads, joined to the rows of `summed`: of independent cells those of the next larger number of cells, of
-- linear estimates the last entry whose variance is at most that of the row; a rounding error must not decide it.
{% macro widths(release='release_name') -%}
ASOF LEFT JOIN {{ table('dph_half_widths', release) }} AS of_cells
        ON of_cells.noise_scale = summed.noise_scale AND of_cells.cells >= summed.cells
    ASOF LEFT JOIN {{ table('dph_linear_widths', release) }} AS of_draws
        ON of_draws.noise_scale = summed.noise_scale
            AND of_draws.draws <= greatest(1, summed.linear_variance / summed.noise_variance * (1 + 1e-9))
{%- endmacro %}

-- An argument of a macro, read from `dph_arguments`, a part of its query.
{% macro argument(name) -%}
(SELECT a.{{ name }} FROM dph_arguments AS a)
{%- endmacro %}

-- A macro in `internals`, asked as a table. DuckDB looks up names in a macro where the question is asked, so the name is made from
-- that of the release, with double quotes around its parts. In: the macro's name; by the names of its arguments, columns of
-- `dph_arguments`, a part of the query that asks; constants, texts by the names of arguments; `rows_by`, SQL for axes that rows are asked by, which go as text: DuckDB must know
-- them before it reads anything, since they decide the columns.
{% macro inner(name, arguments, release='release_name', rows_by=none, constants={}) -%}
query('FROM ' || CASE
            WHEN contains({{ release }}, '"') THEN regexp_replace({{ release }}, {{ beside(name) }})
            ELSE regexp_replace(regexp_replace({{ release }}, {{ beside(name) }}), '[^.]+', '"\0"', 'g')
        END || '(''' || replace({{ release }}, '''', '''''') || '''
            {%- for its_name, column in arguments.items() %}, {{ its_name }} := {{ argument(column) }}{% endfor %}
            {%- for its_name, value in constants.items() %}, {{ its_name }} := ''{{ value }}''{% endfor %}
            {%- if rows_by %}, rows_by := ' || coalesce('''' || replace(CAST({{ rows_by }} AS VARCHAR), '''', '''''') || '''', 'NULL') || '
            {%- endif %})')
{%- endmacro %}

-- The view of the release is named before what asks it, without reading it: DuckDB answers a wrong name with the nearest right one.
{% macro named_view(release='release_name') -%}
(SELECT count(*) FROM (FROM query_table({{ release }}) LIMIT 0)) AS dph_named
{%- endmacro %}
