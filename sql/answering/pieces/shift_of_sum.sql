-- How far all rows that the bound cut, wherever they fell, would move a sum: in words.
'with them this sum would move by '
    || {{ number('(least(0, barred.least) * capping.cut_upper)', '+') }} || ' to '
    || {{ number('(greatest(0, barred.most) * capping.cut_upper)', '+') }} || ' at most'
