-- The sum of a column, which does not depend on the order of its rows: whole 2^-20ths are added as integers.
(
            sum(CAST(floor(({number}) * 1048576) AS HUGEINT)) / 1048576
            + fsum(({number}) - floor(({number}) * 1048576) / 1048576)
        )
