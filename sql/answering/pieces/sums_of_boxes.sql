-- The first part of every macro that sums boxes, down to the rows of `summed`; what it takes is said in its pieces.
{% include 'pieces/opening.sql' %},
{% include 'pieces/bins.sql' %},
{% include 'pieces/boxes.sql' %},
{% if rows_by is defined %}{% include 'pieces/rows_by.sql' %},
{% endif %}{% include 'pieces/nested.sql' %},
{% include 'pieces/atoms.sql' %},
{% include 'pieces/sums.sql' %},
