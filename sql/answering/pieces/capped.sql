-- The sentence on what the bound cut, from a row of `caps`; null without a quality table.
{beginning} || 'the bound cut about ' || format('{:,}', CAST(round({row}.cut) AS BIGINT)) || ' rows (95 %: '
            || format('{:,}', CAST(round({row}.cut_lower) AS BIGINT)) || ' to '
            || format('{:,}', CAST(round({row}.cut_upper) AS BIGINT)) || '); no interval covers them'
