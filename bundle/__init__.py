"""Makes one archive with which an office installs the program on a machine without network: `make bundle`.

Not here: what runs at the office. That is in `files/`, plain shell, and goes into the archive as it is.
"""
