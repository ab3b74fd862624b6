"""Public numbers that both sides of the privacy boundary use: budgets, noisy answers and their laws, estimates,
intervals.

Nothing here draws noise or knows a file: noise lies in `confidential`, arithmetic without an epsilon in `solvers`.
"""
