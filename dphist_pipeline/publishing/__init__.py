"""The public side: files whose bytes are a function of the released values and the spec alone."""
