-- The columns of an answer, from a row of `barred`; `cut_note` and `last_note`, cases of the note; `judged_error`, what reliability judges.
barred.estimate,
    barred.unbiased,
    barred.noise_error,
    barred.ci_lower,
    barred.ci_upper,
    barred.basis,
    barred.cells,
    {% set note -%}
    CASE
        WHEN barred.basis = 'known' THEN {{ notes.KNOWN | literal }}
        {{ cut_note | default('') }}WHEN barred.ci_lower IS NULL AND barred.has_sums THEN {{ notes.CUTS_GROUP | literal }}
        WHEN barred.ci_lower IS NULL THEN {{ notes.NO_INTERVAL | literal }}
        WHEN barred.estimate NOT BETWEEN barred.ci_lower - 1e-6 AND barred.ci_upper + 1e-6 THEN {{ notes.SMOOTHED | literal }}
        WHEN barred.estimate < 0 THEN {{ notes.BELOW | literal }}
        {% if has_limits is defined %}WHEN barred.estimate NOT BETWEEN barred.known_least AND barred.known_most THEN {{ notes.BEYOND | literal }}
        {% endif -%}
        {{ last_note | default('') }}
    END
    {%- endset -%}
    {{ noted(note, 'barred.cells') }} AS note,
    CASE
        WHEN barred.ci_lower IS NULL THEN NULL
        WHEN barred.basis = 'known' THEN 'known'
        WHEN barred.ci_lower <= 0 OR {{ judged_error | default('barred.noise_error') }} > {{ most_fair }} * barred.unbiased THEN 'poor'
        WHEN {{ judged_error | default('barred.noise_error') }} > {{ most_good }} * barred.unbiased THEN 'fair'
        ELSE 'good'
    END AS reliability
