-- Whether a cell of dph_cells, as t, lies in a box of conditions, as c.
t.period = c.period AND t.revision = c.revision AND t.cell_number BETWEEN c.first_cell AND c.final_cell
        AND (c.is_run OR len(list_filter(
            c.allowed,
            lambda k: (t.cell_number // k.stride) % k.size NOT BETWEEN k.first AND k.final
                OR coalesce(get_bit(k.bits, CAST((t.cell_number // k.stride) % k.size AS INTEGER)) = 0, false)
        )) = 0)
