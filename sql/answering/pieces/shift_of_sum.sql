-- How far all rows that the bound cut, wherever they fell, would move a sum: in words.
'with them this sum would move by ' || {least_shift} || ' to ' || {most_shift} || ' at most'
