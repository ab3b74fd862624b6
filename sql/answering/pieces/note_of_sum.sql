-- The note of a sum over periods or of a change between them, from a row of `barred`.
-- In: `missing`, words on missing days; `also_noted`, words on a change; `below_zero`, a last case; what `noted` takes.
{% set note -%}
concat_ws(
        '; ',
        {{ missing | default('NULL') }},
        {{ also_noted | default('NULL') }},
        CASE
            WHEN barred.is_known AND barred.half_width = 0 THEN {{ notes.KNOWN | literal }}
            WHEN barred.half_width IS NULL THEN {{ notes.NO_INTERVAL | literal }}
            WHEN abs(barred.estimate - barred.unbiased) > barred.half_width + 1e-6 THEN {{ notes.SMOOTHED | literal }}{{ below_zero | default('') }}
        END
    )
{%- endset -%}
{{ noted(note, 'barred.cells', most | default(2), added | default('1'), release, names | default('')) }}
