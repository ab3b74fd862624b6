"""The confidential side: reading records, bounding what one unit contributes, counting every declared cell.

Nothing here fails because of what a record holds, and nothing here prints, logs or raises what one holds.
"""
