-- Of Chernoff's inequality, at which shares of the largest rate it is tried: any of them gives a bound that holds.
list_concat(list_transform(range(1, 151), lambda k: 0.9 ** k), list_transform(range(1, 41), lambda k: 1 - 0.8 ** k))
