-- The columns of the axes that rows are asked by, from the later one of two publications.
LEFT JOIN side
    ON side._summed.period = barred.second_period AND side._summed.revision = barred.second_revision
        AND side._summed.place = barred.second_place AND side._summed.cell = barred.cell
