-- The columns of the axes that rows are asked by. In: of_box, the name of a box; row, what has period, revision and cell.
LEFT JOIN keyed
    ON keyed.name = '{{ of_box }}' AND keyed.period = {{ row | default('barred') }}.period AND keyed.revision = {{ row | default('barred') }}.revision AND keyed.cell = {{ row | default('barred') }}.cell
LEFT JOIN grouped
    ON grouped._name = keyed.name AND grouped.period = keyed.period AND grouped.revision = keyed.revision
        AND grouped._first = keyed._first
