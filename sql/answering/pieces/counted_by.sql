-- The counts by some axes or levels, with what macros around them read: see dph_counted_by. In: axes, SQL for the list of names.
SELECT answered.*
    FROM {{ named_view() }}, {{ inner('dph_counted_by', {'box': 'box', 'period': 'period', 'revision': 'revision'}, rows_by=axes, constants={
        'asked_by': name, 'cut_told': 'yes' if is_cut_told is defined else 'no'
    }) }} AS answered
