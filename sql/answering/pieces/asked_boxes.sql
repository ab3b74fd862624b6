-- The conditions of the boxes of a question, read without DuckDB's extension `json`, which not every client can load.
-- In: `boxes`, the arguments that give boxes, by the names of these. In a box that is JSON text, `null` is no category.
-- `form` is a box with `s` in place of each word: {s:[s,s],s:s,s:{s:s}}. `kind` is one, list, not, or odd for another object.
{% set given = boxes or {'box': 'CAST(NULL AS VARCHAR)'} -%}
asked_boxes AS (
    SELECT
        w.source, w.text,
        list_transform(
            regexp_extract_all(w.text, {{ patterns.word | literal }}),
            lambda x: CASE
                WHEN trim(x) = 'NULL' OR (w.is_text AND trim(x) = 'null') THEN NULL
                WHEN x[1] NOT IN ('"', '''') THEN trim(x)
                WHEN NOT contains(x, '\') THEN x[2:-2]
                ELSE array_to_string(list_transform(
                    regexp_extract_all(x[2:-2], {{ patterns.escape | literal }}),
                    lambda e: CASE
                        WHEN e[1] <> '\' THEN e
                        WHEN len(e) = 12 THEN chr(
                            TRY_CAST('0x' || e[3:6] AS INTEGER) * 1024 + TRY_CAST('0x' || e[9:12] AS INTEGER) - 56613888
                        )
                        WHEN len(e) = 6 THEN chr(TRY_CAST('0x' || e[3:] AS INTEGER))
                        ELSE translate(e[2:], 'nrtbf', chr(10) || chr(13) || chr(9) || chr(8) || chr(12))
                    END
                ), '')
            END
        ) AS words,
        regexp_replace(regexp_replace(w.text, {{ patterns.word | literal }}, 's', 'g'), '\s', '', 'g') AS form,
        CASE WHEN regexp_full_match(form, {{ patterns.form | literal }}) THEN regexp_extract_all(form, {{ patterns.shape | literal }}) END AS shapes
    FROM (
        SELECT
            unnest([{{ given | map('literal') | join(', ') }}]) AS source,
            unnest(CAST([{% for box in given.values() %}CAST({{ box }} AS VARCHAR){{ ', ' if not loop.last }}{% endfor %}] AS VARCHAR[])) AS text,
            unnest([{% for box in given.values() %}typeof({{ box }}) IN ('VARCHAR', 'JSON'){{ ', ' if not loop.last }}{% endfor %}]) AS is_text
    ) AS w
),
-- Several parts read it: it is computed once, and not planned in each.
asked_conditions AS MATERIALIZED (
    SELECT
        c.source, c.words[1] AS axis,
        CASE
            WHEN contains(c.shape, '{') AND c.words[2] = 'not' AND regexp_full_match(c.shape, 's.\{s.[^:=]*') THEN 'not'
            WHEN contains(c.shape, '{') THEN 'odd'
            WHEN contains(c.shape, '[') THEN 'list'
            ELSE 'one'
        END AS kind,
        c.words[CASE WHEN kind = 'not' THEN 3 ELSE 2 END:] AS members
    FROM (
        SELECT
            p.source, p.shapes[p.number] AS shape,
            coalesce(length(regexp_replace(array_to_string(p.shapes[:p.number - 1], ''), '[^s]', '', 'g')), 0) AS before,
            p.words[before + 1:before + length(regexp_replace(shape, '[^s]', '', 'g'))] AS words
        FROM (SELECT a.*, unnest(range(1, len(a.shapes) + 1)) AS number FROM asked_boxes AS a) AS p
    ) AS c
),
-- A box that is no object, or names an axis twice, is refused.
odd_boxes AS (
    SELECT b.source, b.text
    FROM asked_boxes AS b LEFT JOIN (
        SELECT c.source, len(list_distinct(list(c.axis))) AS axes FROM asked_conditions AS c GROUP BY c.source
    ) AS counted ON counted.source = b.source
    WHERE b.text IS NOT NULL AND (b.shapes IS NULL OR len(b.shapes) <> coalesce(counted.axes, 0))
)
