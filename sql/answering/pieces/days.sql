-- The days of the period of an answer, null for period `all`: its first day, and the day after its last. In: period; end.
TRY_CAST({period} AS DATE) AS period_start,
    {end} AS period_end
