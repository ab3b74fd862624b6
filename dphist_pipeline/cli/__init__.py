"""The command line: one file for each command, in the four folders by which `dphist --help` lists them.

A command reads options, calls one function of another package and prints what it gives. What it decides lies there.
"""
