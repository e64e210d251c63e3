"""Hypothesis without deadlines: on a busy machine they measure the machine."""

from hypothesis import settings

settings.register_profile("no_deadline", deadline=None)
settings.load_profile("no_deadline")
