-- For dph_range: the bins within the range, and the bins that overlap it.
UNION ALL
        SELECT
            named.name, bins.grid, bins.axis AS level_of, bins.stride, bins.size, bins.position,
            coalesce(
                CASE named.name
                    WHEN 'inner' THEN bins.bin_lower >= ranges.low_end AND bins.bin_upper <= ranges.high_end
                    ELSE bins.bin_upper > ranges.low_end AND bins.bin_lower < ranges.high_end
                END,
                false
            ) AS is_wanted
        FROM ranges JOIN bins ON bins.grid = ranges.grid AND bins.axis = ranges.axis, named
        WHERE ranges.binned
