"""What published releases are used for: synthetic records, classifiers, blocking for record linkage.

It asks public files as any reader does, and spends nothing. Nothing that touches records imports it.
"""
