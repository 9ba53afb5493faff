"""Advice, shown: in the console, as code, and as a page."""
