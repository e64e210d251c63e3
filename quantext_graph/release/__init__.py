"""A release as its user meets it: check, preview, run, and what they say."""
