"""The specs: YAML files of releases and of collections, each checked whole before any data is opened.

Here is what a file says and means: axes, periods, sensitivity, code lists, queries over rows, the digest. What the
settings of a mechanism mean is handed in from above (`Registry` in `model.py`); records are read in `confidential`.
"""
