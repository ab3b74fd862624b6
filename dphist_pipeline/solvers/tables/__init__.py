"""Tables of one family measured together: which marginals and levels, with which shares, and their estimates."""
