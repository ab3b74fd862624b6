-- The sentence on what the bound cut, from a row of `caps`; null without a quality table.
'the bound cut about ' || format('{:,}', CAST(round({row}.cut) AS BIGINT)) || ' rows (95 %: '
            || format('{:,}', CAST(round({row}.cut_lower) AS BIGINT)) || ' to '
            || format('{:,}', CAST(round({row}.cut_upper) AS BIGINT)) || ')'
            || coalesce(' among the first ' || {row}.seen || ' of each unit ({unseen})', '') || '; no interval covers them'
