-- The first part of every macro that sums boxes, down to the rows of `summed`; what it takes is said in its pieces.
{% include 'pieces/opening.sql' %},
{% include 'pieces/bins.sql' %},
{% include 'pieces/boxes_asked.sql' %},
{% include 'pieces/boxes.sql' %},
{% include 'pieces/nested.sql' %},
{% include 'pieces/atoms.sql' %},
{% include 'pieces/sums.sql' %},
