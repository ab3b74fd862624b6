-- For dph_range: the bins within the range, and the bins that overlap it.
UNION ALL
        SELECT
            named.name, bins.grid, bins.axis AS level_of, bins.stride, bins.size, bins.position,
            coalesce(bins.bin_lower >= ranges.low_end AND bins.bin_upper <= ranges.high_end, false) AS is_within,
            coalesce(bins.bin_upper > ranges.low_end AND bins.bin_lower < ranges.high_end, false) AS is_around,
            1 AS share
        FROM ranges JOIN bins ON bins.grid = ranges.grid AND bins.axis = ranges.axis, named
        WHERE ranges.binned
