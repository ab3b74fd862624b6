"""Sums along trees and lines: consistency, wavelets, strategies of a workload, curves that make a line of a plane."""
