-- How far one draw of noise goes, from a row of `{row}`: missed (the probability that it goes farther) and decay. The law of the
-- draw, with that in `bound`.
greatest(0, ceil(ln(2 / ({row}.missed * (1 + exp(-{row}.decay)))) / {row}.decay - 1 + 1e-9))
