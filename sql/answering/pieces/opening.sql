-- The first part of every macro: the cells of the release, and the publications in the question.
-- In: release_name; the columns of a cell; a period by its first day and a revision, or lists of these with their places in the question:
-- null stands for all periods, and for the latest revision; named_periods, those that must be there; `also`, more columns of a publication; `answers`, if no better table
-- of a family may answer: `asked` for the release's own, `family` for any. `boxes` is none for a question without boxes.
-- `arguments` has the names of a macro's boxes, period and revision, which it reads by subqueries: DuckDB takes constants into every part
-- of a query that comes from them, and a question takes a tenth longer to plan. What is asked by `inner` reads them so anyway.
{% set period = argument('period') if arguments is defined else 'period' -%}
{% set revision = argument('revision') if arguments is defined else 'revision' -%}
WITH
{% if arguments is defined -%}
dph_arguments AS (SELECT {% for name in arguments %}{{ name }} AS {{ name }}{{ ', ' if not loop.last }}{% endfor %}),
{% endif -%}
-- The view of the release is named first, without reading it: DuckDB answers a wrong name with the nearest right one, and 1.4 binds the
-- parts of a query before what stands in FROM.
dph_named AS (SELECT count(*) FROM (FROM query_table({{ release }}) LIMIT 0)),
-- No release can have the name of this table, so the name of a part of this query cannot hide it. Read this part once: if two
-- parts read it, DuckDB makes a copy of all cells first. Of a family's table, other tables that may answer follow its cells,
-- each from its `first_number` on.
dph_cells AS (
    SELECT {{ columns | default(summed_columns) }} FROM query_table(
        regexp_replace({{ release }}, {{ beside('dph_asked_') }} || {{ name_of(release) }})
    ) AS t
),
{% if boxes is not none %}{% include 'pieces/asked_boxes.sql' %},
{% endif %}asked_keys AS (
    {% if periods is defined -%}
    SELECT
        unnest(CAST({{ periods }} AS VARCHAR[])) AS period, unnest(CAST({{ revisions }} AS BIGINT[])) AS revision,
        unnest({{ places }}) AS place
    {%- else -%}
    SELECT k.period, TRY_CAST(k.written AS BIGINT) AS revision, k.written, 1 AS place
    FROM (SELECT CAST({{ period }} AS VARCHAR) AS period, CAST({{ revision }} AS VARCHAR) AS written) AS k
    {%- endif %}
),
published AS (
    SELECT
        r.release, r.period, r.period_end, r.revision, r.grid, r.cells, r.noise_scale, r.noise_variance,
        r.alpha, r.beta, r.gamma, r.delta, r.step, {% if also is defined %}{{ also }}, {% endif %}r.noise_scale IS NOT NULL OR r.step IS NOT NULL AS has_bars,
        {{ 'r.is_latest, 0 AS first_number' if answers is defined else 'o.is_latest, o.first_number' }}
    FROM
        dph_named, {{ table('dph_releases', release) }} AS r
        {% if answers is not defined -%}
    {% include 'pieces/best_join.sql' %}
    {%- elif answers == 'asked' -%}
    WHERE r.release = {{ name_of(release) }}
    {%- else -%}
    WHERE {{ name_of(release) }} IN (r.release, r.family)
    QUALIFY row_number() OVER (PARTITION BY r.period, r.revision ORDER BY r.release) = 1
    {%- endif %}
),
chosen AS (
    SELECT published.*, k.place
    FROM published JOIN asked_keys AS k
        ON coalesce(k.period = published.period, true) AND coalesce(k.revision = published.revision, published.is_latest)
),
known_periods AS (
    SELECT
        list_distinct(list(published.period)) AS first_days,
        min(published.period) || ' to ' || max(published.period) || ' (' || len(first_days)
            || ' in all; others were not published, or were withdrawn)' AS said
    FROM published
),
period_problems AS (
    SELECT 'there is no period ' || k.period || '; it has ' || known.said AS problem
    FROM known_periods AS known,
        {% if named_periods is defined %}(SELECT unnest(CAST({{ named_periods }} AS VARCHAR[])) AS period){% else %}asked_keys{% endif %} AS k
    WHERE NOT list_contains(known.first_days, k.period)
    UNION ALL
    SELECT 'there is no revision ' || k.revision || coalesce(' of period ' || k.period, '') || '; it has '
        || string_agg(DISTINCT p.revision, ', ' ORDER BY p.revision)
    FROM asked_keys AS k ANTI JOIN chosen ON chosen.place = k.place
    JOIN published AS p ON coalesce(p.period = k.period, true)
    WHERE k.revision IS NOT NULL
    GROUP BY k.period, k.revision
    UNION ALL
    {% if periods is not defined -%}
    SELECT 'a revision is a whole number, as in revision := 1, not ' || k.written
    FROM asked_keys AS k
    WHERE NOT regexp_full_match(k.written, '-?[0-9]{1,18}')
    UNION ALL
    {% endif -%}
    SELECT 'a macro takes the name of a release; ' || {{ name_of(release) }} || coalesce(
            ' is a family of tables; name one of them: ' || family.tables,
            ' is a view of every revision; ask for ' || regexp_replace({{ name_of(release) }}, '_all$', '')
                || ', with revision := 1 for its first revision'
        )
    FROM known_periods AS known, (
        SELECT string_agg(DISTINCT r.release, ', ' ORDER BY r.release) AS tables
        FROM {{ table('dph_releases', release) }} AS r
        WHERE r.family = {{ name_of(release) }}
    ) AS family
    WHERE known.first_days IS NULL
)
