-- What public figures leave open of the counts of `counted`, which has the number of its cells in each group with a figure,
-- `known_groups`: at least the figures of the groups that lie in it as a whole, at most those of the groups that it touches.
-- In: `key`, the columns that name a row, as a list.
{% set groups = known_groups | default('known_groups') -%}
known_limits AS (
    SELECT
        {% for one in key %}s.{{ one }}, {% endfor %}CAST(coalesce(sum(k.figure) FILTER (s.cells = k.cells), 0) AS DOUBLE) AS known_least,
        CAST(sum(k.figure) AS DOUBLE) AS known_most
    FROM (
        SELECT {% for one in key %}r.{{ one }}, {% endfor %}unnest(map_keys(r.{{ groups }})) AS known_group, unnest(map_values(r.{{ groups }})) AS cells
        FROM {{ counted }} AS r
    ) AS s
    JOIN (SELECT DISTINCT c.release, c.period, c.revision FROM chosen AS c) AS c ON c.period = s.period AND c.revision = s.revision
    JOIN {{ table('dph_known') }} AS k
        ON k.release = c.release AND k.period = c.period AND k.revision = c.revision AND k.known_group = s.known_group
    GROUP BY {% for one in key %}s.{{ one }}{{ ', ' if not loop.last }}{% endfor %}
)
