"""Texts, numbers and days of pages in the office's language: one file a language, and English in the code itself.

It knows words alone: pages decide what they tell. Nothing that programs read is translated.
"""
