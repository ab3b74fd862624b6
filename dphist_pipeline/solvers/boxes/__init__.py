"""Boxes of a grid, found by halving: their splits, pruning and joining."""
