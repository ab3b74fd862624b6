-- What dph_total and dph_box answer. In: the name of the macro that asks, for its messages; the other arguments of dph_box.
{% set asked_by = 'asked_by' -%}
CREATE OR REPLACE MACRO {{ internals }}dph_one_box(release_name, asked_by, box, period, revision) AS TABLE
{% include 'pieces/opening.sql' %},
{% include 'pieces/one_box.sql' %}
