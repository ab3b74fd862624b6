"""What published releases are used for: synthetic records, classifiers, blocking for record linkage."""
