-- The first part of dph_ratio and dph_difference: rows of `answered` and `box_pairs`, as dph_box_pairs answers them. In: rows_by, SQL for
-- the axes that rows are asked by; is_cut_told.
WITH dph_arguments AS (
    SELECT
        first_box AS first_box, second_box AS second_box, period AS period, revision AS revision, {{ asked }} AS with_chance
),
answered AS (
    SELECT answered.*
    FROM {{ named_view() }}, {{ inner('dph_box_pairs', {
        'first_box': 'first_box', 'second_box': 'second_box', 'period': 'period', 'revision': 'revision',
        'with_chance': 'with_chance'
    }, rows_by=rows_by | default('NULL'), constants={
        'asked_by': name, 'cut_told': 'yes' if is_cut_told is defined else 'no'
    }) }} AS answered
),
box_pairs AS (SELECT unnest(answered._pair) FROM answered),
