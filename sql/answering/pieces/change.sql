-- The columns of a change between two counts, from a row of `barred`.
barred.first_estimate,
    barred.second_estimate,
    barred.estimate,
    barred.unbiased,
    barred.noise_error,
    barred.unbiased - barred.half_width AS ci_lower,
    barred.unbiased + barred.half_width AS ci_upper,
    barred.basis,
    barred.cells,
    {note_of_sum} AS note,
    CASE
        WHEN {same_records} THEN '{chance_same}' || {why_revised}
        WHEN {asked} THEN '{chance_within}'
        ELSE '{chance_outside}'
    END AS chance
