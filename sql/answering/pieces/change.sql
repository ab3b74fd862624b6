-- The columns of a change between two counts, from a row of `barred`. In: `same_records`, when two counts are
-- of the same records.
{% set also_noted -%}
(
            SELECT any_value({{ notes.WHO_IS_COUNTED | literal }}) FROM {{ table('dph_releases', release) }} AS r
            WHERE r.release IN ({{ names | default(name_of(release)) }}) AND r.year_rows IS NOT NULL
        )
{%- endset -%}
barred.first_estimate,
    barred.second_estimate,
    barred.estimate,
    barred.unbiased,
    barred.noise_error,
    barred.unbiased - barred.half_width AS ci_lower,
    barred.unbiased + barred.half_width AS ci_upper,
    CASE WHEN barred.basis = 'known' AND barred.half_width > 0 THEN 'linear' ELSE barred.basis END AS basis,
    barred.cells,
    {% include 'pieces/note_of_sum.sql' %} AS note,
    CASE
        WHEN {{ same_records | default('false') }} THEN {{ notes.CHANCE_SAME | literal }}
            || {% if same_records is defined %}{% include 'pieces/why_revised.sql' %}{% else %}''{% endif %}
        WHEN barred.half_width IS NULL THEN NULL
        WHEN {{ asked }} THEN {{ notes.CHANCE_WITHIN | literal }}
        ELSE {{ chance_outside }}
    END AS chance
