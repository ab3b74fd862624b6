-- The values of t for Chernoff's inequality, as fractions of the largest one; each of them gives a valid bound.
list_concat(list_transform(range(1, 151), lambda k: 0.9 ** k), list_transform(range(1, 41), lambda k: 1 - 0.8 ** k))
