-- The problem that is shown, if there is any: those of the box, with `problems_alone`; else `first_problems` go before them.
{% set every = 'all_problems' if rows_by is defined else 'problems' -%}
{% if problems_alone is defined -%}
SELECT min(p.problem) AS problem FROM {{ every }} AS p
{%- else -%}
SELECT coalesce((SELECT min(f.problem) FROM first_problems AS f), (SELECT min(p.problem) FROM {{ every }} AS p)) AS problem
{%- endif %}
