"""Attacks on a release, its utility, and the page that says both."""
